"""How curves look: a colour, dash and marker for each method.

A method looks the same in every figure of the paper; variants of one method take the palette in order. Curves of one
figure differ in colour, in how dark it is, and in marker, as long as there are colours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Ten colours that differ in hue and, printed in grey, by 17 of 255 steps or more; in this order from dark to light
BLACK, PURPLE, BLUE, GREEN, RED = "#000000", "#4a0082", "#0042a0", "#007541", "#e42a1c"
MAGENTA, GREY, ORANGE, SKY, GOLD = "#d4389a", "#858585", "#ee8a00", "#62c0f4", "#e8cc00"
DARK = "#333333"  # what belongs to no curve
TURN = (RED, BLUE, ORANGE, BLACK, GOLD, GREY, MAGENTA, GREEN, SKY, PURPLE)  # neighbours far apart in grey
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)), (0, (3, 1, 1, 1, 1, 1)))
# with sizes at which they look equally large
MARKERS = dict(zip("osD^vP*X<>hpd", (6.0, 5.6, 5.4, 5.6, 5.6, 6.2, 8.5, 6.2, 5.6, 5.6, 6.8, 6.8, 6.4), strict=True))
COMPACT = "osDhp"  # get a white edge; it would eat the points and arms of the others


@dataclass(frozen=True)
class Style:
    colour: str
    dash: int
    marker: str


# methods that share a figure of the paper differ in colour and in marker
STYLES: Mapping[str, Style] = {
    "auto": Style(PURPLE, 0, "*"),
    "mcts-vs-bo": Style(RED, 0, "o"),
    "mcts-vs-turbo": Style(BLUE, 0, "s"),
    "mcts-vs-rs": Style(ORANGE, 0, "D"),
    "mcts-vs-saasbo": Style(MAGENTA, 0, "P"),
    "mcts-vs-saas": Style(MAGENTA, 3, "P"),
    "dropout-bo": Style(SKY, 1, "^"),
    "dropout-turbo": Style(MAGENTA, 1, "v"),
    "dropout-rs": Style(GREEN, 1, "<"),
    "lasso-bo": Style(PURPLE, 3, "h"),
    "lasso-turbo": Style(GOLD, 3, "p"),
    "bo": Style(BLACK, 2, "X"),
    "bo-dsp": Style(SKY, 2, "h"),
    "bo-iso": Style(RED, 2, "d"),
    "sklearn-bo": Style(GREY, 4, "p"),
    "turbo": Style(ORANGE, 2, "d"),
    "turbo-m": Style(SKY, 2, "v"),
    "scbo": Style(BLUE, 3, "v"),
    "random": Style(GREY, 2, "v"),
    "la-mcts-turbo": Style(BLACK, 4, ">"),
    "saasbo": Style(PURPLE, 2, "*"),
    "saas": Style(PURPLE, 4, "*"),
    "hesbo": Style(GOLD, 3, "h"),
    "rembo": Style(GREEN, 4, "p"),
    "baxus": Style(GOLD, 2, "P"),
    "alebo": Style(SKY, 3, "p"),
    "cma-es": Style(GREEN, 1, "<"),
    "vae-bo": Style(MAGENTA, 2, "v"),
    "optuna-tpe": Style(MAGENTA, 1, "D"),
    "optuna-gp": Style(BLUE, 4, "s"),
    "ucb-all": Style(BLACK, 2, "X"),
    "ucb-dropout": Style(SKY, 1, "^"),
    "ucb-mcts-vs": Style(RED, 0, "o"),
}


def styles(labels: Sequence[str]) -> dict[str, Style]:
    """A method has its own style wherever another has not taken its colour or its marker.

    What is left, and the variants of one method, take in order what is least used.
    """
    methods = [label.partition("[")[0] for label in labels]
    found: dict[str, Style] = {}
    for label, method in zip(labels, methods, strict=True):
        own = STYLES.get(method) if label == method or methods.count(method) == 1 else None
        if own and not any(own.colour == other.colour or own.marker == other.marker for other in found.values()):
            found[label] = own
    for label in labels:
        if label not in found:
            found[label] = _free(list(found.values()))
    return {label: found[label] for label in labels}


def _free(taken: Sequence[Style]) -> Style:
    """The least used colour, marker and dash; a marker that must come back does so with another dash."""
    colour = min(TURN, key=[style.colour for style in taken].count)
    marker = min(MARKERS, key=[style.marker for style in taken].count)
    same, dashes = [style.dash for style in taken if style.marker == marker], [style.dash for style in taken]
    return Style(colour, min(range(len(DASHES)), key=lambda dash: (same.count(dash), dashes.count(dash))), marker)


def short_names(labels: Sequence[str]) -> tuple[str, list[str]]:
    """A title for the legend and a name for each label, as papers write them: what all have in common is said once."""
    methods = {label.partition("[")[0] for label in labels}
    if len(labels) > 1 and len(methods) == 1 and all(label.endswith("]") for label in labels):
        return written(methods.pop()), [_options(label.partition("[")[2][:-1]) for label in labels]
    return "", [written(label) for label in labels]


# methods and options as the paper writes them
METHODS: Mapping[str, str] = {
    "bo": "Vanilla BO",
    "sklearn-bo": "Vanilla BO (scikit-learn)",
    "random": "RS",
    "cma-es": "CMA-ES",
    "hesbo": "HeSBO",
    "baxus": "BAxUS",
    "ucb-all": "GP-UCB, all variables",
    "ucb-dropout": "GP-UCB, Dropout",
    "ucb-mcts-vs": "GP-UCB, MCTS-VS",
    "auto": "auto (default)",
    "optuna-tpe": "Optuna TPE",
    "optuna-gp": "Optuna GP",
}
WORDS = {"turbo": "TuRBO", "dropout": "Dropout", "lasso": "LASSO-VS"}
CAPITALS = ("mcts", "vs", "bo", "rs", "la", "saasbo", "saas", "alebo", "vae", "rembo", "gtbo", "dsp", "iso", "m")
OPTIONS = {
    "cp": "$C_p$",
    "bad_limit": "$N_{bad}$",
    "split_size": "$N_{split}$",
    "subset_batches": "$N_v$",
    "samples": "$N_s$",
    "k": "$k$",
    "d": "$d$",
}
VALUES = {
    "variant=authors-program": "authors' program",
    "variant=authors-recall": "authors' recall program",
    "acquisition_search=candidates": "candidate search",
}

QUANTITIES = {"NASBench": "accuracy", "TransNAS": "accuracy", "Hopper": "return", "Walker2d": "return"}


def quantity(problem: str) -> str:
    """What a problem's values are called on an axis."""
    return next((name for stem, name in QUANTITIES.items() if problem.startswith(stem)), "value")


def written(label: str) -> str:
    """A method as the paper writes it: MCTS-VS-BO, C_p = 0.1."""
    method, bracket, rest = label.partition("[")
    parts = [WORDS.get(part, part.upper() if part in CAPITALS else part) for part in method.split("-")]
    name = METHODS.get(method, "-".join(parts))
    return f"{name}, {_options(rest[:-1])}" if bracket else name


def _options(text: str) -> str:
    found = []
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if name == "fill_in":
            found.append(value)
        elif part in VALUES:
            found.append(VALUES[part])
        else:
            found.append(f"{OPTIONS[name]} = {value}" if equals and name in OPTIONS else part.replace("=", " = "))
    return ", ".join(found)
