"""Quality of the paper's methods on its four synthetic problems, beside the paper's numbers.

    python benchmarks/bars.py [--seeds 10] [--only CASE ...] [--workers 2] [--results results/bars.jsonl]

Every finished run is stored at once; running the command again goes on where it stopped and prints the table.
600 evaluations each, seeds from 2021 on, one BLAS thread per process.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

import stored
from mctsvs import problems
from mctsvs.lab.run import run

BUDGET = 600
PROBLEMS = ("Levy10_100", "Levy10_300", "Hartmann6_300", "Hartmann6_500")
CASES: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "mcts-vs-bo": ("mcts-vs-bo", {}, PROBLEMS),
    "mcts-vs-bo, authors-program": ("mcts-vs-bo", {"variant": "authors-program"}, PROBLEMS),
    "mcts-vs-bo, candidates": ("mcts-vs-bo", {"acquisition_search": "candidates"}, PROBLEMS),
    "mcts-vs-rs": ("mcts-vs-rs", {}, PROBLEMS),
    "dropout-bo": ("dropout-bo", {}, PROBLEMS),
    "bo": ("bo", {}, PROBLEMS),
    "random": ("random", {}, PROBLEMS),
    "mcts-vs-turbo": ("mcts-vs-turbo", {}, PROBLEMS),
    "turbo": ("turbo", {}, PROBLEMS),
    "la-mcts-turbo": ("la-mcts-turbo", {}, PROBLEMS),
}
PAPER = {  # mean best of 50 runs (Appendix E), in the order of PROBLEMS
    "MCTS-VS-BO": (-2.620, -1.506, 3.223, 3.200),
    "MCTS-VS-TuRBO": (-1.102, -1.765, 3.153, 3.012),
    "LA-MCTS-TuRBO": (-2.444, -6.218, 2.892, 2.619),
    "TuRBO": (-0.662, -1.855, 2.857, 2.629),
}
PAPER_RECALL = (0.429, 0.433, 0.352, 0.350)  # of MCTS-VS-BO (Table 2)


def job(problem: str, case: str, seed: int) -> dict[str, Any]:
    method, options, _ = CASES[case]
    record = run(problems.make(problem), method, budget=BUDGET, seed=seed, options=options)
    return {
        "problem": problem,
        "case": case,
        "seed": seed,
        "best": record.best,
        "recall": record.recall,
        "seconds": record.optimizer_seconds,
        "at": {str(n): record.trace[n - 1] for n in (50, 100, 200, 300, 600)},
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown: mean, standard error and worst of the best values, recall and optimiser seconds."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["problem"], row["case"]].append(row)
    lines = [
        "| problem | method | seeds | mean best ± standard error | worst | at 100 | at 200 | recall | seconds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for problem in PROBLEMS:
        for method, values in PAPER.items():
            recall = f"{PAPER_RECALL[PROBLEMS.index(problem)]:.3f}" if method == "MCTS-VS-BO" else ""
            value = values[PROBLEMS.index(problem)]
            lines.append(f"| {problem} | paper's {method} | 50 | {value:.3f} | | | | {recall} | |")
        for case in CASES:
            group = groups.get((problem, case))
            if group:
                best = np.array([row["best"] for row in group])
                error = best.std(ddof=1) / np.sqrt(len(best)) if len(best) > 1 else float("nan")
                at100, at200 = (np.mean([row["at"][n] for row in group]) for n in ("100", "200"))
                seconds = np.mean([row["seconds"] for row in group])
                shares = [row["recall"] for row in group if row["recall"] is not None]  # None: it selects no variables
                share = f"{np.mean(shares):.3f}" if shares else ""
                lines.append(
                    f"| {problem} | {case} | {len(best)} | {best.mean():.3f} ± {error:.3f} | {best.min():.3f} "
                    f"| {at100:.2f} | {at200:.2f} | {share} | {seconds:.1f} |"
                )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", nargs="*", choices=tuple(CASES), help="cases to run; default: all")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--results", type=Path, default=Path("results/bars.jsonl"))
    arguments = parser.parse_args()
    wanted = [
        (problem, case, seed)
        for seed in range(2021, 2021 + arguments.seeds)
        for case, (_, _, chosen) in CASES.items()
        for problem in chosen
        if arguments.only is None or case in arguments.only
    ]
    rows = stored.finish(
        job,
        wanted,
        ("problem", "case", "seed"),
        arguments.results,
        arguments.workers,
        lambda row: f"{row['problem']} {row['case']} {row['best']:.3f}",
    )
    print(table(rows))


if __name__ == "__main__":
    main()
