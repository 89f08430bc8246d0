"""Sequences that teach a model to look back: repeated tokens, and facts that are asked for later.

Each generator gives (ids of length + 1 tokens, weight of each of the `length` predictions).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from tokenizers import Tokenizer

SPECIAL = 2  # start and end
SYLLABLES = (
    "ba be bi bo da de di do fa fe ga go ha he ka ke ki ko la le li lo ma me mi mo na ne ni no pa pe ra re ri ro sa se si so ta te ti to "
    "va ve vi vo wa za ze zo"
).split()
SURNAMES = "赵钱孙李周吴郑王冯陈卫蒋沈韩杨朱秦许何吕张孔曹严华金魏陶姜谢邹苏潘葛范彭鲁韦马苗方任袁柳史唐"
GIVEN = "云飞德玄明亮权策布超羽忠良文武安平成和义仁信勇智达元宝山河海天龙虎凤英雄杰豪春秋冬雪梅兰竹松"
DIGITS = 4

Sample = tuple[np.ndarray, np.ndarray]


def name(rng: np.random.Generator, language: str) -> str:
    """A person's name; there are millions in English and a hundred thousand in Chinese, so a new one is nearly always unseen."""
    if language == "zh":
        return str(rng.choice(list(SURNAMES))) + "".join(rng.choice(list(GIVEN), rng.integers(1, 3)))
    return "".join(rng.choice(SYLLABLES, rng.integers(2, 4))).capitalize()


@dataclass(frozen=True)
class Facts:
    """Builds facts ("The code of NAME is 7391.") as token lists. `text`: language → ids to fill the space between with."""

    tokenizer: Tokenizer
    text: dict[str, np.ndarray]

    def parts(self, language: str, who: str, code: str) -> tuple[list[int], list[int], list[int]]:
        """Question, digits and full stop of one fact. The Chinese wording has the name beside the number."""
        question, stop = (f"拨给{who}：", "。") if language == "zh" else (f" The code of {who} is ", ".")
        digits = [i for digit in code for i in self._ids(digit)]
        return self._ids(question), digits, self._ids(stop)

    def _ids(self, text: str) -> list[int]:
        return self.tokenizer.encode(text).ids  # type: ignore[no-any-return]

    def draw(self, rng: np.random.Generator, language: str, count: int) -> list[tuple[list[int], list[int], list[int]]]:
        """`count` facts about different people."""
        people: dict[str, None] = {}
        while len(people) < count:
            people[name(rng, language)] = None
        return [self.parts(language, who, "".join(map(str, rng.integers(0, 10, DIGITS)))) for who in people]

    def filler(self, rng: np.random.Generator, language: str, count: int) -> list[int]:
        """`count` tokens of running text."""
        text = self.text[language]
        at = int(rng.integers(0, len(text) - count))
        return text[at : at + count].tolist()  # type: ignore[no-any-return]

    def needle(self, rng: np.random.Generator, language: str, distance: int, facts: int = 1) -> tuple[list[int], list[int]]:
        """(prompt that ends with the question, digits of the answer). The oldest of `facts` facts is asked for.

        `distance`: tokens from the first digit in the fact to the first digit of the answer; at least what the facts need.
        """
        drawn = self.draw(rng, language, facts)
        ids = [0] + [i for question, digits, stop in drawn for i in (*question, *digits, *stop)]
        question, digits, _ = drawn[0]
        first_digit = 1 + len(question)
        ids += self.filler(rng, language, max(0, distance - (len(ids) - first_digit) - len(question)))
        return ids + question, digits


@dataclass(frozen=True)
class Repeats:
    """Random tokens, repeated with a period in `low`…`high`: from the second round on each token can be known."""

    entries: int
    low: int
    high: int

    def __call__(self, rng: np.random.Generator, length: int) -> Sample:
        period = min(int(rng.integers(self.low, self.high + 1)), (length + 1) // 2)
        once = rng.choice(self.entries - SPECIAL, period, replace=False) + SPECIAL
        ids = np.tile(once, (length + 1) // period + 1)[: length + 1]
        return ids, (np.arange(length) >= period).astype(np.float32)


@dataclass(frozen=True)
class AskedFacts:
    """1…`most` facts, up to `gap` tokens of text between, then questions in random order as long as there is room."""

    facts: Facts
    most: int
    gap: int
    around: float  # weight of what is not an answer
    answer: float = 4.0

    def __call__(self, rng: np.random.Generator, length: int) -> Sample:
        language = "zh" if rng.random() < 0.5 else "en"
        drawn = self.facts.draw(rng, language, int(rng.integers(1, self.most + 1)))
        ids, answers = [0], []
        for question, digits, stop in drawn:
            ids += question + digits + stop + self._gap(rng, language, len(drawn))
        while True:
            for index in rng.permutation(len(drawn)):
                question, digits, stop = drawn[index]
                more = self._gap(rng, language, 2) + question
                if len(ids) + len(more) + len(digits) + 1 > length + 1:
                    return self._finish(rng, language, ids, answers, length)
                ids += more
                answers.append(len(ids))
                ids += digits + stop

    def _gap(self, rng: np.random.Generator, language: str, share: int) -> list[int]:
        return self.facts.filler(rng, language, int(rng.integers(0, self.gap // share + 1))) if self.gap else []

    def _finish(self, rng: np.random.Generator, language: str, ids: list[int], answers: Sequence[int], length: int) -> Sample:
        ids = (ids + self.facts.filler(rng, language, max(0, length + 1 - len(ids))))[: length + 1]
        weights = np.full(length, self.around, np.float32)
        for at in answers:
            weights[at - 1 : at - 1 + DIGITS] = self.answer
        return np.array(ids), weights


@dataclass(frozen=True)
class RunningText:
    """Text as it stands, `chinese` of it Chinese."""

    facts: Facts
    chinese: float

    def __call__(self, rng: np.random.Generator, length: int) -> Sample:
        language = "zh" if rng.random() < self.chinese else "en"
        return np.array(self.facts.filler(rng, language, length + 1)), np.ones(length, np.float32)


def batch(rng: np.random.Generator, mix: Sequence[tuple[float, Callable[..., Sample]]], rows: int, length: int) -> Sample:
    """`rows` samples, each kind by its share: ids (rows, length + 1), weights (rows, length)."""
    kinds = rng.choice(len(mix), rows, p=[share for share, _ in mix])
    ids, weights = zip(*(mix[kind][1](rng, length) for kind in kinds), strict=True)
    return np.stack(ids), np.stack(weights)
