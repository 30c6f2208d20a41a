"""The numbers that the paper prints in its tables: case -> problem -> number."""

from __future__ import annotations

from mctsvs.bench.algorithms import ConfiguredMethod

FOUR = ("Levy10_100", "Levy10_300", "Hartmann6_300", "Hartmann6_500")
AUTHORS_PROGRAM = ConfiguredMethod("mcts-vs-bo", {"variant": "authors-program"})
RECALL_PROGRAM = ConfiguredMethod(
    "mcts-vs-bo", {"variant": "authors-recall", "split_size": 7}
)  # what their script for it ran


def _rows(text: str) -> dict[ConfiguredMethod, list[str]]:
    """A line for each method, a column for each of the four problems."""
    return {ConfiguredMethod(method): cells for method, *cells in map(str.split, text.strip().splitlines())}


def _numbers(text: str) -> dict[ConfiguredMethod, dict[str, float]]:
    """/ where there is no number."""
    rows = _rows(text).items()
    return {case: {p: float(c) for p, c in zip(FOUR, cells, strict=True) if c != "/"} for case, cells in rows}


def _tests(text: str) -> dict[ConfiguredMethod, dict[str, tuple[float, float, str]]]:
    """Each cell is mean, standard deviation and mark, with commas between them."""
    found = {}
    for case, cells in _rows(text).items():
        parts = [cell.split(",") for cell in cells]
        found[case] = {p: (float(a), float(b), c) for p, (a, b, c) in zip(FOUR, parts, strict=True)}
    return found


SECONDS = _numbers("""
    sklearn-bo     3.190    4.140    4.844     5.540
    dropout-bo     2.707    3.225    3.237     3.685
    mcts-vs-bo     2.683    3.753    3.711     4.590
    turbo          8.621    9.206    9.201     9.754
    la-mcts-turbo  14.431   22.165   25.853    34.381
    mcts-vs-turbo  4.912    5.616    5.613     5.893
    saasbo         /        /        2185.678  4163.121
    hesbo          220.459  185.092  51.678    55.699
    alebo          /        /        470.714   512.641
    cma-es         0.030    0.043    0.043     0.045
""")
_RECALL = _numbers("""
    dropout-bo     0.100    0.030    0.020     0.012
    mcts-vs-bo     0.429    0.433    0.352     0.350
""")
RECALL = {**_RECALL, **dict.fromkeys((AUTHORS_PROGRAM, RECALL_PROGRAM), _RECALL[ConfiguredMethod("mcts-vs-bo")])}
_TESTS = _tests("""
    mcts-vs-bo     -2.620,1.757,+  -1.506,0.854,≈  3.223,0.074,≈  3.200,0.091,-
    mcts-vs-turbo  -1.102,1.711,   -1.765,1.811,   3.153,0.264,   3.012,0.434,
    la-mcts-turbo  -2.444,1.708,+  -6.218,3.389,+  2.892,1.147,+  2.619,0.672,+
    turbo          -0.662,1.049,-  -1.855,2.038,≈  2.857,0.475,+  2.629,0.672,+
""")
TESTS = {**_TESTS, AUTHORS_PROGRAM: _TESTS[ConfiguredMethod("mcts-vs-bo")]}
