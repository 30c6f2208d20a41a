"""Real search spaces: whole numbers, categories and conditions, beside libraries told of them in their own terms.

    python benchmarks/spaces.py mixint [--dimensions 40,80,160] [--functions 1-24] [--methods NAME ...] [--budget 400]
    python benchmarks/spaces.py mixed [--seeds 5] [--methods NAME ...] [--budget 300]
    python benchmarks/spaces.py conditional [--seeds 5] [--methods NAME ...] [--budget 300]

`mixint`: COCO's bbob-mixint, all functions, instance 1, ranks at 100, 200 and 400 evaluations. `mixed` and
`conditional`: the problems of mixed.py, mean regret. Methods are our own by name, and those of native.py.
Finished runs are stored in --results and never repeated; the tables are of all that is stored. One thread a process.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
from pathlib import Path

import peers
import rows
import tables
from mctsvs.bench.algorithms import ConfiguredMethod
from mctsvs.bench.run_store import Job, RunStore

RIVALS = ["auto", "tpe", "cmaes with margin", "ngopt", "turbo", "random"]
SAMPLERS = ["auto", "tpe", "gp-sampler", "turbo", "random"]
POINTS = (50, 100, 200, 300)


def mixint(arguments: argparse.Namespace) -> None:
    arguments.suite, arguments.instances, arguments.figure = "bbob-mixint", [1], None
    peers.run_suite(arguments)


def regret(arguments: argparse.Namespace) -> None:
    """Of one problem, its seed the run's."""
    names, store = peers.usable(arguments.methods), RunStore(arguments.results, print)
    wanted = [
        Job(arguments.problem, ConfiguredMethod(n), s, arguments.budget) for s in range(arguments.seeds) for n in names
    ]
    with store.locked():
        peers.finish(wanted, store, arguments.workers)
    stored = [run for run in rows.finished(arguments.results, POINTS) if run.problem == arguments.problem]
    print(tables.regret([run for run in stored if run.method in names and run.budget == arguments.budget]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    suite = commands.add_parser("mixint", help="COCO's suite of whole and real variables")
    suite.add_argument("--dimensions", type=rows.whole_numbers, default=[40, 80, 160])
    suite.add_argument("--functions", type=rows.whole_numbers, default=range(1, 25))
    suite.set_defaults(batch=1, command=mixint, methods=RIVALS, budget=400)
    problems = {"mixed": "Mixed100", "conditional": "Conditional100"}
    own = [commands.add_parser(name, help=f"{problem} of mixed.py") for name, problem in problems.items()]
    for command, problem in zip(own, problems.values(), strict=True):
        command.add_argument("--seeds", type=int, default=5)
        command.set_defaults(command=regret, problem=problem, methods=SAMPLERS, budget=300)
    for command in (suite, *own):
        command.add_argument("--methods", nargs="*")
        command.add_argument("--budget", type=int)
        command.add_argument("--workers", type=int, default=2)
        command.add_argument("--results", type=Path, default=Path("results/spaces"))
    arguments = parser.parse_args()
    arguments.command(arguments)


if __name__ == "__main__":
    main()
