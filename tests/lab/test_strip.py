import re
from html.parser import HTMLParser

import pytest

from labkit.lab.strip import HUES, strip_html, strip_text
from labkit.measure.attribute import NAMES, Attribution, Part
from tests.lab.fakes import HOSTILE, attribution


class Balanced(HTMLParser):
    """Fails on a tag that is closed wrongly; keeps the tags and attributes it saw."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def parsed(text: str) -> Balanced:
    tree = Balanced()
    tree.feed(text)
    assert tree.open == []
    return tree


def test_every_part_name_has_a_hue() -> None:
    assert set(HUES) == set(NAMES)


def test_parts_stand_in_the_order_of_the_legend_and_add_up_to_the_scale() -> None:
    half = attribution(0.5)
    text = strip_html([("base", attribution(), ""), ("variant", half, "")])
    widths = [float(x) for x in re.findall(r"width:([\d.]+)%", text)]
    assert sum(widths[:5]) == pytest.approx(100, abs=0.01)
    assert sum(widths[5:]) == pytest.approx(100 * half.seconds / attribution().seconds, abs=0.01)
    titles = [a["title"] or "" for tag, a in parsed(text).seen if a.get("class") == "lk-part"]
    assert [t.split(":")[0] for t in titles[:5]] == ["weights", "KV", "arithmetic", "dispatch", "unexplained"]
    assert "20.0 ms, 54 % (bytes ÷ ceiling)" in titles[0]


def test_only_used_parts_are_in_the_legend() -> None:
    legend = strip_html([("base", attribution(), "")]).split("lk-legend", 2)[2].split("</div>")[0]
    assert "unexplained" in legend
    assert "waiting" not in legend


def test_a_number_is_left_out_where_no_bar_is_wide_enough() -> None:
    thin = Attribution(
        1.0, (Part("weights", 0.99, "counted"), Part("kv", 0.01, "counted"), Part("unexplained", 0.0, "the rest")), "bandwidth"
    )
    numbers = re.findall(r'<i class="lk-at(\d+)[^>]*>([^<]+)</i>', strip_html([("base", thin, "")]))
    assert numbers == [("240", "990")]


def test_a_large_unexplained_part_is_said_in_words_a_small_one_is_not() -> None:
    assert "39 % of the time is unexplained" in strip_text([("base", attribution(0.1, unexplained_s=0.0022), "")])
    assert "of the time is unexplained" not in strip_text([("base", attribution(), "")])


def test_the_note_of_an_attribution_is_said() -> None:
    assert "base: shrunk to fit" in strip_html([("base", attribution(note="shrunk to fit"), "")])


def test_hostile_text_stays_text() -> None:
    bad = Attribution(1.0, (Part("weights", 1.0, HOSTILE),), "bandwidth", HOSTILE)
    text = strip_html([(HOSTILE, bad, HOSTILE)])
    assert "<img" not in text
    assert {tag for tag, _ in parsed(text).seen}.isdisjoint({"img", "script"})


def test_the_summary_keeps_one_key_shortcuts_off() -> None:
    tree = parsed(strip_html([("base", attribution(), "")]))
    assert [a.get("data-lm-suppress-shortcuts") for tag, a in tree.seen if tag == "summary"] == ["true"]


def test_text_has_every_part_with_its_share() -> None:
    assert strip_text([("base", attribution(), "▲ faster")]) == (
        "base: 37.0 ms/token: weights 20.0 ms (54 %), KV 6.00 ms (16 %), arithmetic 4.00 ms (11 %), "
        "dispatch 5.00 ms (14 %), unexplained 2.00 ms (5 %); ▲ faster"
    )


def test_no_rows_make_an_empty_strip() -> None:
    assert parsed(strip_html([])).seen
