"""The numbers of others: those that the paper prints in its tables, and the authors' own runs.

Their runs are looked for in a data directory, compared with, and never shipped: `authors_runs/best_so_far.csv.gz` has
the columns group, problem, algorithm, seed, evaluations, best_y and seconds. In older names `lamcts_vs_*` is MCTS-VS.
"""

from __future__ import annotations

import csv
import functools
import gzip
import re
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from mctsvs.bench.algorithms import ConfiguredMethod
from mctsvs.bench.problems import data
from mctsvs.bench.stats import Summary, summary
from mctsvs.utils.validation import Array, InputError

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

FOLDER, FILE = "authors_runs", "best_so_far.csv.gz"
Key = tuple[str, str, str]  # which of their logs, problem, algorithm
Traces = Mapping[int, Mapping[int, tuple[float, float]]]  # seed -> evaluations -> best value, seconds

# where a comparison's runs lie unless an entry says otherwise; ones they marked as bad or unused are left alone
USUAL: tuple[Key, ...] = tuple(
    (logs, "{problem}", "{algorithm}")
    for logs in (
        "hartmann6_logs",
        "levy10_logs",
        "repeat_logs",
        "dropout_logs",
        "nasbench_logs",
        "naslib_logs_parallel",
        "rl_logs",
    )
)
ALGORITHMS = {
    "mcts-vs-bo": ("mcts_vs_bo", "lamcts_vs_bo"),
    "mcts-vs-turbo": ("mcts_vs_turbo", "lamcts_vs_turbo"),
    "mcts-vs-rs": ("mcts_vs_rs",),
    "mcts-vs-saasbo": ("mcts_vs_saasbo",),
    "dropout-bo": ("dropout_bo_{d}",),
    "dropout-turbo": ("dropout_turbo_{d}",),
    "dropout-rs": ("dropout_rs_{d}",),
    "lasso-bo": ("lasso_bo",),
    "lasso-turbo": ("lasso_turbo",),
    "sklearn-bo": ("bo",),
    "bo": ("bo",),
    "turbo": ("turbo1",),
    "la-mcts-turbo": ("lamcts_turbo",),
    "saasbo": ("saasbo",),
    "hesbo": ("hesbo",),
    "alebo": ("alebo",),
    "cma-es": ("cmaes",),
    "vae-bo": ("vae_{d}",),
    "random": ("random_search",),
}
FILL_INS = {"best-k": "bestk", "average-best-k": "average_bestk", "random": "random"}
NAMES = {"NASBench101": "nasbench", "NASBench201": "nasbench201", "TransNAS": "nasbenchtrans"}


class AuthorLogs:
    """Their runs of a set of seeds."""

    def __init__(self, runs: Mapping[Key, Traces], seeds: Sequence[int]) -> None:
        self.runs, self.seeds = runs, tuple(seeds)

    def __bool__(self) -> bool:
        return bool(self.runs)

    def find(self, places: Sequence[Key], problem: str, case: ConfiguredMethod) -> AuthorRuns | None:
        """Their runs of a case on a problem: of the places named, else of the usual ones, those that go furthest.

        In some places all seeds but one stop early: the one that goes on is no mean.
        """
        usual = () if _special(case) else USUAL
        for looked_in in (places, usual):
            if found := self._all(looked_in, problem, case):
                return max(found, key=lambda runs: (runs.checkpoints[-1] if runs.checkpoints else 0, len(runs.runs)))
        return None

    def _all(self, places: Sequence[Key], problem: str, case: ConfiguredMethod) -> list[AuthorRuns]:
        fields = {
            "d": valid_variables(problem),
            **case.options,
            "fill_in": FILL_INS.get(str(case.options.get("fill_in")), ""),
            "problem": problem_name(problem),
        }
        found = []
        for logs, name, algorithm in places:
            for candidate in ALGORITHMS.get(case.method, ()):
                filled = {**fields, "algorithm": candidate.format(d=fields["d"])}
                try:
                    key = logs, name.format(**filled), algorithm.format(**filled)
                except KeyError:
                    continue
                runs = self.runs.get(key)
                if runs and (own := {seed: runs[seed] for seed in self.seeds if seed in runs}):
                    found.append(AuthorRuns(logs, own))
        return found


def _special(case: ConfiguredMethod) -> bool:
    """A setting of an ablation, which their plain runs say nothing about."""
    return bool(set(case.options) - {"d"})


class AuthorRuns:
    """Their runs of one case on one problem, from one of their logs."""

    def __init__(self, logs: str, runs: Traces) -> None:
        self.logs, self.runs = logs, runs

    def column(self, evaluations: int, what: int) -> Array:
        found = [run[evaluations][what] for _, run in sorted(self.runs.items()) if evaluations in run]
        return np.array(found, dtype=np.float64)

    def at(self, evaluations: int) -> Summary:
        """Of their best values after so many evaluations; empty where their file does not say."""
        return summary(self.column(evaluations, 0))

    def seconds(self, evaluations: int) -> Summary:
        """Of the seconds they took for so many evaluations."""
        return summary(self.column(evaluations, 1))

    def values(self, evaluations: int) -> dict[int, float]:
        """By seed."""
        return {seed: run[evaluations][0] for seed, run in self.runs.items() if evaluations in run}

    def paired(self, other: AuthorRuns, evaluations: int) -> tuple[list[float], list[float]]:
        """Values of the seeds both have, in the same order."""
        one, two = self.values(evaluations), other.values(evaluations)
        shared = sorted(set(one) & set(two))
        return [one[seed] for seed in shared], [two[seed] for seed in shared]

    @property
    def checkpoints(self) -> list[int]:
        """Evaluations that all of the runs have."""
        return sorted(set.intersection(*(set(run) for run in self.runs.values())))

    def last(self, evaluations: int) -> int:
        """The largest of them up to so many; 0: none."""
        return max((n for n in self.checkpoints if n <= evaluations), default=0)


def problem_name(problem: str) -> str:
    """Their name of a problem: Hartmann6_5_500 has 30 valid variables, so it is hartmann30_500."""
    if match := re.fullmatch(r"Hartmann6_(\d+)_(\d+)(_v)?", problem):
        return f"hartmann{6 * int(match[1])}_{match[2]}" + ("_various_extent" if match[3] else "")
    if problem in NAMES:
        return NAMES[problem]
    return problem.lower() if problem.startswith(("Hartmann", "Levy")) else problem


def valid_variables(problem: str) -> int:
    """What they told methods that want to know d."""
    if match := re.fullmatch(r"Hartmann6_(\d+)_\d+(_v)?", problem):
        return 6 * int(match[1])
    return 6 if problem.startswith("Hartmann6") else 10


def read(seeds: Sequence[int]) -> AuthorLogs:
    """Their runs from the first data directory that has them; empty if none has."""
    for place in data.directories():
        path = place / FOLDER / FILE
        if path.is_file():
            return AuthorLogs(_read(path), seeds)
    return AuthorLogs({}, seeds)


@functools.cache
def _read(path: Path) -> dict[Key, dict[int, dict[int, tuple[float, float]]]]:
    runs: dict[Key, dict[int, dict[int, tuple[float, float]]]] = {}
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                key = row["group"], row["problem"], row["algorithm"]
                point = float(row["best_y"]), float(row["seconds"] or "nan")
                runs.setdefault(key, {}).setdefault(int(row["seed"]), {})[int(row["evaluations"])] = point
    except (OSError, EOFError, KeyError, ValueError, TypeError, zlib.error):
        raise InputError(f"the file {str(path)!r} is damaged: it should have the authors' runs as CSV") from None
    return runs
