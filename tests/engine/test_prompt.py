"""Prompts of a given size: none is smaller than one token."""

import pytest

from labkit.engine.prompt import RandomKV, RandomTokens
from labkit.errors import BadInput
from labkit.spec import decode


@pytest.mark.parametrize("kind", [RandomTokens, RandomKV])
@pytest.mark.parametrize("tokens", [0, -1])
def test_a_size_below_one_is_refused(kind, tokens: int) -> None:
    for make in (lambda: kind(tokens), lambda: decode({"is": kind.tag, "tokens": tokens})):
        with pytest.raises(BadInput, match=f"{kind.tag}: tokens={tokens}") as caught:
            make()
        assert caught.value.field == "prompt"


@pytest.mark.parametrize("kind", [RandomTokens, RandomKV])
def test_one_token_is_enough(kind) -> None:
    assert kind(1).build(None, 9).ids.shape == (1, 1)
