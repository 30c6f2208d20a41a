"""Options: checked when made, in one sentence, for every method."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import pytest

from mctsvs.methods import registry
from mctsvs.utils.options import Options, option
from mctsvs.utils.validation import InputError, check_bool, check_choice, check_count, check_number, check_seed


@dataclass(frozen=True)
class Sample(Options):
    count: int = option(3, least=2)
    share: float = option(0.5, above=0, most=1)
    kind: str = option("good", among=("good", "bad"))
    strict: bool = False
    limit: int | None = None
    weights: tuple[float, ...] = option((1.0,), least=0)


@dataclass(frozen=True)
class More(Sample):
    count: int = option(5, least=2)
    depth: int = 1


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"count": 1}, "count=1 cannot be used: it must be a whole number, from 2 to 10000"),
        ({"count": 2.5}, "count=2.5 cannot be used: it must be a whole number, from 2 to 10000"),
        ({"count": True}, "count=True cannot be used: it must be a whole number, from 2 to 10000"),
        ({"count": None}, "count=None cannot be used: it must be a whole number, from 2 to 10000"),
        ({"share": 0}, "share=0 cannot be used: it must be a number, above 0, at most 1"),
        ({"share": float("nan")}, "share=nan cannot be used: it must be a number, above 0, at most 1"),
        ({"share": "half"}, "share='half' cannot be used: it must be a number, above 0, at most 1"),
        ({"kind": "ugly"}, "unknown kind 'ugly': use one of good, bad"),
        ({"strict": 1}, "strict=1 cannot be used: it must be True or False"),
        ({"limit": 0}, "limit=0 cannot be used: it must be a whole number, from 1 to 10000"),
        ({"weights": ()}, "weights=() cannot be used: give one or more numbers"),
        ({"weights": (1.0, -1.0)}, "weights=-1.0 cannot be used: it must be a number, 0 or more"),
    ],
    ids=str,
)
def test_a_wrong_option_is_one_sentence(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        Sample(**given)
    assert str(caught.value) == sentence


def test_right_options_are_taken_and_stay() -> None:
    options = Sample(count=2, share=1, limit=None, weights=(0.0, 2.5))
    assert (options.count, options.share, options.limit) == (2, 1, None)
    with pytest.raises(FrozenInstanceError):
        options.count = 4  # type: ignore[misc]


def test_a_whole_float_becomes_an_int() -> None:
    options = Sample(count=1e3, limit=7.0)  # type: ignore[arg-type]
    assert (options.count, options.limit) == (1000, 7)
    assert type(options.count) is type(options.limit) is int


def test_a_subclass_adds_names_and_changes_defaults() -> None:
    assert More.names() == ("count", "share", "kind", "strict", "limit", "weights", "depth")
    assert More.take({"share": 0.25, "depth": 2, "stranger": 1}) == More(share=0.25, depth=2)
    assert Sample.take({"depth": 2}) == Sample()
    assert More().count == 5
    with pytest.raises(InputError, match="count=1"):
        More(count=1)


def test_checks_give_the_value_back() -> None:
    assert check_count("n", 3, least=0, most=3) == 3
    assert check_number("x", 2) == 2.0
    assert check_bool("b", False) is False
    assert check_choice("word", "a", ["a", "b"]) == "a"
    assert check_seed(0) == 0
    assert check_seed(None) != check_seed(None)
    with pytest.raises(InputError, match="n=4 cannot be used: it must be a whole number, from 0 to 3"):
        check_count("n", 4, least=0, most=3)


@pytest.mark.parametrize("method", registry.METHODS)
def test_every_method_declares_its_options(method: str) -> None:
    """A default and a word of explanation for each, and no name that the optimizer itself takes."""
    for kind in registry.option_types(registry.METHODS[method]):
        kind()
        words = " ".join(base.__doc__ or "" for base in kind.__mro__[:-1])
        assert [option for option in kind.names() if option not in words] == []
    assert not set(registry.options_of(registry.METHODS[method])) & {"space", "direction", "method", "seed", "budget"}
