"""What a model can look back at: facts asked for at a distance, and random tokens that repeat."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

SPECIAL = 2  # start and end of a text
SYLLABLES = [
    "ba",
    "be",
    "bi",
    "bo",
    "da",
    "de",
    "di",
    "do",
    "fa",
    "fe",
    "ga",
    "go",
    "ha",
    "he",
    "ka",
    "ke",
    "ki",
    "ko",
    "la",
    "le",
    "li",
    "lo",
    "ma",
    "me",
    "mi",
    "mo",
    "na",
    "ne",
    "ni",
    "no",
    "pa",
    "pe",
    "ra",
    "re",
    "ri",
    "ro",
    "sa",
    "se",
    "si",
    "so",
    "ta",
    "te",
    "ti",
    "to",
    "va",
    "ve",
    "vi",
    "vo",
    "wa",
    "za",
    "ze",
    "zo",
]
SURNAMES = "赵钱孙李周吴郑王冯陈卫蒋沈韩杨朱秦许何吕张孔曹严华金魏陶姜谢邹苏潘葛范彭鲁韦马苗方任袁柳史唐"
GIVEN = "云飞德玄明亮权策布超羽忠良文武安平成和义仁信勇智达元宝山河海天龙虎凤英雄杰豪春秋冬雪梅兰竹松"
DIGITS = 4


def name(rng: np.random.Generator, language: str) -> str:
    """A person's name; there are a hundred thousand in either language, so a drawn one is nearly always unseen."""
    if language == "zh":
        return str(rng.choice(list(SURNAMES))) + "".join(rng.choice(list(GIVEN), rng.integers(1, 3)))
    return "".join(rng.choice(SYLLABLES, rng.integers(2, 4))).capitalize()


def repeated(rng: np.random.Generator, entries: int, period: int, length: int) -> np.ndarray:
    """`length` ids: `period` different random tokens, over and over."""
    once = rng.choice(entries - SPECIAL, period, replace=False) + SPECIAL
    return np.tile(once, length // period + 1)[:length]


@dataclass(frozen=True)
class Facts:
    """Builds facts ("The code of NAME is 7391.") as token lists. `text`: language → ids to fill the space between with."""

    tokenizer: Any  # with encode(text, add_special_tokens=False)
    text: dict[str, np.ndarray]

    def parts(self, language: str, who: str, code: str) -> tuple[list[int], list[int], list[int]]:
        """Question, digits and full stop of one fact. The Chinese wording has the name beside the number."""
        question, stop = (f"拨给{who}：", "。") if language == "zh" else (f" The code of {who} is ", ".")
        digits = [i for digit in code for i in self._ids(digit)]
        return self._ids(question), digits, self._ids(stop)

    def _ids(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False))

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


@torch.inference_mode()
def needle_recall(model: Any, facts: Facts, language: str, distance: int, tries: int, seed: int = 7, count: int = 1) -> float:
    """Share of `tries` answers with all DIGITS digits right, greedy; unseen names. Chance is 10⁻⁴."""
    rng = np.random.default_rng([seed, distance, count])
    right = 0
    for _ in range(tries):
        ids, digits = facts.needle(rng, language, distance, count)
        logits = model(torch.tensor([ids + digits[:-1]])).logits[0, -DIGITS:]
        right += logits.argmax(-1).tolist() == digits
    return right / tries


@torch.inference_mode()
def repeat_recall(model: Any, period: int, tries: int, seed: int = 5, asked: int = 32) -> float:
    """Share of the second round's first `asked` tokens that are predicted, for random tokens with that period."""
    rng, more = np.random.default_rng([seed, period]), min(asked, period)
    ids = torch.from_numpy(np.stack([repeated(rng, model.config.vocab_size, period, period + more) for _ in range(tries)]))
    guessed = model(ids[:, :-1]).logits[:, -(more - 1) :].argmax(-1)
    return float((guessed == ids[:, -(more - 1) :]).float().mean())
