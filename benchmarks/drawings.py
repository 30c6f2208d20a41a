"""The figures of results pages, drawn from the files of runs in docs/results/tables.

    python benchmarks/drawings.py [NAME ...] [--to build/figures]

The site draws all of them when it is built (docs/_ext/drawn.py).
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

import rows
import suites
import tables
from mctsvs.bench import comparison, problems
from mctsvs.bench.figures import Curve, Dot, DotScale, Plot, draw, draw_dots
from mctsvs.bench.stats import summary
from rows import Run, by_dimension, by_method, points_of

TABLES = tables.PAGES / "tables"
FAR = 10.0  # standard errors: parts that are further from nothing are drawn there
Drawing = Callable[[Path], list[Path]]


def ranks(file: str, stem: Path) -> list[Path]:
    """Mean ranks of a suite, a plot for each number of variables."""
    runs = rows.read(TABLES / file)
    found = {f"ranks, {D} variables": tables.contest(group) for D, group in by_dimension(runs).items()}
    return suites.figure(found, stem, points_of(runs))


def values(file: str, chosen: Sequence[str], stem: Path, *, known: bool = False) -> list[Path]:
    """Means of the best value, or of the regret where the optimum is `known`, a plot for each problem."""
    runs = rows.read(TABLES / file)
    plots: list[Plot] = []
    for problem in chosen:
        methods = by_method(run for run in runs if run.problem == problem)
        curves = [_curve(method, group) for method, group in methods.items()]
        optimum = problems.make(problem).optimum if known else None
        plots.append(comparison.plotted(problem, curves, optimum=optimum, named=not plots))
    return draw(plots, stem)


def _curve(method: str, runs: Sequence[Run]) -> Curve:
    points = points_of(runs)
    found = [summary([run.at[n] for run in runs if n in run.at]) for n in points]
    arrays = np.array([(n, one.mean, one.error) for n, one in zip(points, found, strict=True)], dtype=np.float64)
    return Curve(method, *arrays.T)


def parts(files: Sequence[str], stem: Path) -> list[Path]:
    """What leaving a part out changes after the last evaluation, a dot for each problem."""
    plots = []
    for file, title in zip(
        files, ("200 evaluations", "300 evaluations in batches of 20", "600 evaluations"), strict=True
    ):
        runs = rows.read(TABLES / file)
        methods = by_method(runs)
        last, dots = points_of(runs)[-1], list[Dot]()
        whole = {(run.problem, run.seed): run for run in next(iter(methods.values()))}
        for method, group in list(methods.items())[1:]:
            for problem in dict.fromkeys(run.problem for run in group):
                own = [run.at[last] - whole[problem, run.seed].at[last] for run in group if run.problem == problem]
                gain = summary(own)
                size = gain.mean / gain.error if gain.error else 0.0
                name = method.removeprefix("auto without ")
                dots.append(Dot(name, float(np.clip(size, -FAR, FAR)), 1.0))
        plots.append((title, dots))
    axis = f"without the part minus with it, in standard errors (at most {FAR:.0f} are drawn)"
    return draw_dots(plots, stem, axis, DotScale())


def seconds(file: str, stem: Path) -> list[Path]:
    """Milliseconds of thinking, a dot for each method."""
    methods = by_method(rows.read(TABLES / file))
    found = {method: summary([run.ms for run in group]) for method, group in methods.items()}
    order = sorted(found, key=lambda method: found[method].mean)
    dots = [Dot(method, found[method].mean, found[method].error) for method in order]
    return draw_dots([("Hartmann6_300", dots)], stem, "milliseconds an evaluation", DotScale(logarithmic=True))


def draws(file: str, stem: Path) -> list[Path]:
    """Regret of TuRBO and MCTS-VS-TuRBO with exact draws and at the published limit."""
    with (TABLES / file).open(newline="") as lines:
        runs = [row for row in csv.DictReader(lines) if row["device"] == "gpu"]
    points = [name for name in runs[0] if name.startswith("at_")]
    plots: list[Plot] = []
    for problem in dict.fromkeys(run["problem"] for run in runs):
        curves = []
        for method, limit in sorted({(run["method"], run["limit"]) for run in runs}, reverse=True):
            own = [run for run in runs if (run["problem"], run["method"], run["limit"]) == (problem, method, limit)]
            found = [summary([float(run[name]) for run in own]) for name in points]
            x = np.array([float(name.removeprefix("at_")) for name in points])
            mean, error = (np.array([getattr(one, what) for one in found]) for what in ("mean", "error"))
            label = f"{method}[{'exact draws' if limit == '10000' else 'published limit'}]"
            curves.append(Curve(label, x, mean, error))
        plots.append(comparison.plotted(problem, curves, optimum=problems.make(problem).optimum, named=not plots))
    return draw(plots, stem)


DRAWINGS: dict[str, Drawing] = {
    "coco": partial(ranks, "coco.csv"),
    "mixint": partial(ranks, "mixint.csv"),
    "synthetic": partial(values, "fresh.csv", ("Hartmann6_500", "Levy10_300", "Ackley60"), known=True),
    "real": partial(values, "real500.csv", ("Rover60", "MOPTA08", "NASBench101", "NASBench201")),
    "parts": partial(parts, ("parts.csv", "partsbatch.csv", "partslong.csv")),
    "seconds": partial(seconds, "seconds.csv"),
    "turbo-draws": partial(draws, "turbo-sampling.csv"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(DRAWINGS)}; default: all")
    parser.add_argument("--to", type=Path, default=Path("build/figures"), metavar="FOLDER")
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or DRAWINGS:
        print(*DRAWINGS[name](arguments.to / name))


if __name__ == "__main__":
    main()
