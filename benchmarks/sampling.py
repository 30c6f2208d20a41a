"""What TuRBO's draws are worth: Thompson sampling over candidates with GPyTorch, exact and beyond its Cholesky limit.

    python benchmarks/sampling.py run DIR --methods turbo,mcts-vs-turbo --limits 2000,10000 --workers 8
    python benchmarks/sampling.py draws > docs/results/tables/turbo-draws.csv   # what draws keep, by candidates
    python benchmarks/sampling.py collect DIR --cpu DIR   # docs/results/tables/turbo-sampling.csv

TuRBO is written here after its published description and settings (Eriksson et al., NeurIPS 2019: 50 steps of Adam,
min(100 d, 5000) candidates, draws with the noise in them, the whole region in the model), apart from the library's own,
so that one number can be varied: `limit`, GPyTorch's `max_cholesky_size`. A joint draw at more candidates than that
goes through a Lanczos root of low rank in place of a Cholesky factor; TuRBO's published value is 2,000.

It needs torch and gpytorch, which no extra of the package brings; with a CUDA device it uses that.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from mctsvs.methods.base import latin_hypercube
from mctsvs.methods.registry import Method
from mctsvs.methods.solvers import Subspace
from mctsvs.utils.options import Options, option
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Array, Indices

FOUR = ("Levy10_100", "Levy10_300", "Hartmann6_300", "Hartmann6_500")
SHORTEST, FIRST, LONGEST = 0.5**7, 0.8, 1.6
BATCH, BURST, DESIGN = 10, 50, 20  # the MCTS-VS paper's: points at once, on a subset, at a start


@dataclass(frozen=True)
class DrawOptions(Options):
    """limit    candidates beyond which a joint draw is no longer exact
    single   draws at 1,024 candidates and more in single precision, as in the MCTS-VS paper's subsets
    """

    limit: int = option(2000, least=1)
    single: bool = False


class PublishedTuRBO(Saved):
    """One trust region; on a subset it begins with all points known, elsewhere with a design of its own."""

    options_type: ClassVar[type[DrawOptions]] = DrawOptions
    batch = BATCH
    saved = ("coordinates", "first", "seen", "length", "successes", "failures")
    coordinates: Indices | None
    first: int  # row of the history the region begins with
    seen: int
    length: float
    successes: int
    failures: int

    def __init__(self, options: DrawOptions) -> None:
        self.options, self.coordinates = options, None
        self.first = self.seen = 0
        self._reset()

    def _reset(self) -> None:
        self.length, self.successes, self.failures = FIRST, 0, 0

    def propose(self, n: int, subspace: Subspace, rng: np.random.Generator) -> Array:
        d, y = subspace.dimension, subspace.y
        if self.coordinates is None or not np.array_equal(self.coordinates, subspace.coordinates):
            self.coordinates, self.first, self.seen = subspace.coordinates, 0, len(y)
            self._reset()
        if self.seen < len(y):
            self._learn(y[self.first : self.seen], y[self.seen :], d)
            self.seen = len(y)
        if self.length < SHORTEST:
            self.first = len(y)
            self._reset()
        if len(y) - self.first < DESIGN and not len(y) < DESIGN:  # a new region: its design first
            return latin_hypercube(n, d, rng)
        return draw(subspace.X[self.first :], y[self.first :], n, self.length, self.options, rng)

    def _learn(self, before: Array, new: Array, d: int) -> None:
        if not len(before):
            return
        best = before.max()
        if new.max() > best + 1e-3 * abs(best):
            self.successes, self.failures = self.successes + 1, 0
        else:
            self.successes, self.failures = 0, self.failures + 1
        if self.successes == 3:
            self.length, self.successes = min(2.0 * self.length, LONGEST), 0
        elif self.failures == math.ceil(max(4.0, d) / BATCH):
            self.length, self.failures = self.length / 2.0, 0


def draw(X: Array, y: Array, n: int, length: float, options: DrawOptions, rng: np.random.Generator) -> Array:
    """(n, d) the best candidates of n joint draws in the region around the best point, each taken once."""
    import gpytorch
    import torch

    spread = float(y.std())
    values = (y - np.median(y)) / (spread if spread >= 1e-6 else 1.0)
    torch.manual_seed(int(rng.integers(2**31)))
    with gpytorch.settings.max_cholesky_size(options.limit):
        model = fit(X, values)
    points = candidates(X[np.argmax(y)], length, lengthscales(model), rng)
    single = options.single and len(points) >= 1024
    model = model.to(dtype=torch.float32 if single else torch.float64)
    drawn = joint(model, points, n, options.limit, single)
    chosen = []
    for values_of_draw in drawn:
        best = int(np.argmax(values_of_draw))
        chosen.append(points[best])
        drawn[:, best] = -np.inf
    return np.array(chosen)


def joint(model: Any, points: Array, n: int, limit: int, single: bool = False) -> Array:
    """(n, m) draws, noise included."""
    import gpytorch
    import torch

    kind = torch.float32 if single else torch.float64
    at = torch.as_tensor(points, dtype=kind, device=next(model.parameters()).device)
    with torch.no_grad(), gpytorch.settings.max_cholesky_size(limit):
        sample = model.likelihood(model(at)).sample(torch.Size([n]))
    return np.array(sample.cpu().numpy(), dtype=np.float64)


def lengthscales(model: Any) -> Array:
    return np.asarray(model.covar_module.base_kernel.lengthscale.detach().cpu().numpy().ravel(), dtype=np.float64)


def candidates(centre: Array, length: float, scales: Array, rng: np.random.Generator) -> Array:
    """Quasi-random points in the box, each moving a random few coordinates of the centre."""
    from torch.quasirandom import SobolEngine

    d = len(centre)
    m = min(100 * d, 5000)
    weights = np.exp(np.log(scales) - np.log(scales).mean())
    low, high = np.clip(centre - weights * length / 2, 0, 1), np.clip(centre + weights * length / 2, 0, 1)
    unit = SobolEngine(d, scramble=True, seed=int(rng.integers(10**6))).draw(m).double().numpy()
    moved = rng.random((m, d)) <= min(20.0 / d, 1.0)
    still = np.flatnonzero(~moved.any(axis=1))
    moved[still, rng.integers(0, d, len(still))] = True
    return np.where(moved, low + (high - low) * unit, centre)


def fit(X: Array, values: Array, steps: int = 50) -> Any:
    """An exact Gaussian process, its parameters after so many steps of Adam on the marginal likelihood."""
    import gpytorch
    import torch
    from gpytorch.constraints import Interval

    where = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    x, y = (torch.as_tensor(np.array(a), dtype=torch.float64, device=where) for a in (X, values))

    class Process(gpytorch.models.ExactGP):  # type: ignore[misc]
        def __init__(self, likelihood: Any) -> None:
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            kernel = gpytorch.kernels.MaternKernel(
                nu=2.5, ard_num_dims=x.shape[1], lengthscale_constraint=Interval(0.005, 2.0)
            )
            self.covar_module = gpytorch.kernels.ScaleKernel(kernel, outputscale_constraint=Interval(0.05, 20.0))

        def forward(self, at: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(at), self.covar_module(at))

    likelihood = gpytorch.likelihoods.GaussianLikelihood(noise_constraint=Interval(5e-4, 0.2))
    model = Process(likelihood).to(device=where, dtype=torch.float64)
    model.initialize(
        **{
            "covar_module.outputscale": 1.0,
            "covar_module.base_kernel.lengthscale": 0.5,
            "likelihood.noise": 0.005,
        }
    )
    model.train()
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimiser.zero_grad()
        loss = -objective(model(x), y)
        loss.backward()
        optimiser.step()
    return model.eval()


turbo = Method(
    "turbo",
    "TuRBO on GPyTorch",
    selector="all",
    solver=PublishedTuRBO,
    defaults={"burst": BATCH, "initial_points": DESIGN},
)
mcts_vs_turbo = Method(
    "mcts-vs-turbo",
    "the same inside the tree",
    selector="mcts",
    solver=PublishedTuRBO,
    defaults={"burst": BURST, "variant": "authors-program", "single": True},
)


@dataclass(frozen=True)
class Job:
    """One run."""

    problem: str
    method: str
    limit: int
    seed: int
    budget: int

    @property
    def file(self) -> str:
        return f"{self.problem}-{self.method}-{self.limit}-{self.seed}.json"


def run_one(job: Job) -> dict[str, Any]:
    """Best so far after each evaluation."""
    import torch

    from mctsvs.bench import problems
    from mctsvs.bench.record import run

    torch.set_num_threads(1)
    problem = problems.make(job.problem)
    known = {"limit": job.limit}
    if job.method == "mcts-vs-turbo":
        known["cp"] = problem.paper_options["cp"]
    spec = f"{Path(__file__).resolve()}:{job.method.replace('-', '_')}"
    record = run(problem, spec, budget=job.budget, seed=job.seed, options=known)
    return {**vars(job), "trace": record.trace, "seconds": record.clock.wall}


def run_all(arguments: argparse.Namespace) -> None:
    """What is not in the folder yet, a file each."""
    arguments.folder.mkdir(parents=True, exist_ok=True)
    first, _, last = arguments.seeds.partition("-")
    jobs = [
        Job(problem, method, limit, seed, arguments.budget)
        for seed in range(int(first), int(last or first) + 1)
        for problem in arguments.problems.split(",")
        for method in arguments.methods.split(",")
        for limit in map(int, arguments.limits.split(","))
    ]
    left = [job for job in jobs if not (arguments.folder / job.file).is_file()]
    import multiprocessing

    with ProcessPoolExecutor(arguments.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting = {pool.submit(run_one, job): job for job in left}
        for done in as_completed(waiting):
            found = done.result()
            (arguments.folder / waiting[done].file).write_text(json.dumps(found))
            print(waiting[done].file, f"{found['trace'][-1]:.4f} {found['seconds']:.0f} s", flush=True)


def show_draws(arguments: argparse.Namespace) -> None:
    """The variance of draws beside the posterior's own, by number of candidates."""
    import torch

    from mctsvs.bench import problems

    rng = np.random.default_rng(0)
    problem = problems.make("Hartmann6_300")
    X = latin_hypercube(arguments.points, problem.dimension, rng)
    y = np.array([problem(x) for x in X])  # its box is the unit cube
    model = fit(X, (y - np.median(y)) / y.std())
    points = candidates(X[np.argmax(y)], FIRST, lengthscales(model), rng)
    at = torch.as_tensor(points, device=next(model.parameters()).device)
    with torch.no_grad():
        exact = model.likelihood(model(at)).variance.cpu().numpy()
    print("candidates,limit,share_of_variance,distinct_choices_of_200_draws")
    for m in (1000, 2000, 3000, 5000):
        for limit in (2000, 10000):
            torch.manual_seed(0)
            drawn = joint(model, points[:m], 200, limit)
            share = drawn.var(axis=0).mean() / exact[:m].mean()
            print(f"{m},{limit},{share:.3f},{len(np.unique(drawn.argmax(axis=1)))}")


TABLES = Path(__file__).resolve().parents[1] / "docs" / "results" / "tables"
AT = (50, 100, 200, 300, 600)
NAMES = {2000: "published limit, 2,000", 10000: "exact, 10,000"}


def collect(folder: Path, device: str) -> list[dict[str, Any]]:
    """A row for each run: the best value after some numbers of evaluations."""
    rows = []
    for path in sorted(folder.glob("*.json")):
        found = json.loads(path.read_text())
        own = {name: found[name] for name in ("method", "problem", "limit", "seed")}
        trace = found["trace"]
        rows.append({"device": device, **own, **{f"at_{n}": f"{trace[n - 1]:.6g}" for n in AT if n <= len(trace)}})
    return rows


def tables(rows: list[dict[str, Any]], paper: Path) -> str:
    """Markdown: both limits beside the authors' runs and the library's, and their difference by seed."""
    from mctsvs.bench import stats
    from mctsvs.bench.comparison import markdown_table
    from mctsvs.bench.results import OURS, THEIRS, Numbers

    known, with_papers = (Numbers.read(paper / f"significance{ending}.csv") for ending in ("", "-paper"))
    parts = []
    for device, method in (("gpu", "turbo"), ("gpu", "mcts-vs-turbo"), ("cpu", "turbo")):
        body = []
        for problem in FOUR:
            own = [r for r in rows if (r["device"], r["method"], r["problem"]) == (device, method, problem)]
            ends = {n: {int(r["seed"]): float(r["at_600"]) for r in own if int(r["limit"]) == n} for n in NAMES}
            if not any(ends.values()):
                continue
            summaries = [stats.summary(list(values.values())) for values in ends.values()]
            cells = [f"{s} ({s.n} runs)" if s.n else "" for s in summaries]
            shared = sorted(set(ends[2000]) & set(ends[10000]))
            gain = stats.summary([ends[10000][seed] - ends[2000][seed] for seed in shared])
            pair = [[ends[n][seed] for seed in shared] for n in (10000, 2000)]
            cells += [str(gain), f"{stats.signed_rank(*pair):.2g}"] if shared else ["", ""]
            beside = [known.at(source, problem, method, "significance") for source in (THEIRS, OURS)]
            beside.insert(1, with_papers.at(OURS, problem, method, "significance"))
            cells += [f"{found} ({found.n} runs)" if found else "" for found in beside]
            body.append([problem, *cells])
        header = ["problem", *NAMES.values(), "exact - published, by seed", "p", "authors' runs"]
        header += ["library's own, paper's settings", "library's own"]
        parts.append(f"`{method}`, {device.upper()}:\n\n" + markdown_table(header, body))
    return "\n\n".join(parts)


def make_numbers(arguments: argparse.Namespace) -> None:
    """The file of numbers."""
    rows = collect(arguments.folder, "gpu") + (collect(arguments.cpu, "cpu") if arguments.cpu else [])
    with (TABLES / "turbo-sampling.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("run")
    command.add_argument("folder", type=Path)
    command.add_argument("--problems", default=",".join(FOUR))
    command.add_argument("--methods", default="turbo")
    command.add_argument("--limits", default="2000,10000")
    command.add_argument("--seeds", default="2021-2025")
    command.add_argument("--budget", type=int, default=600)
    command.add_argument("--workers", type=int, default=1)
    command.set_defaults(command=run_all)
    command = commands.add_parser("draws")
    command.add_argument("--points", type=int, default=100)
    command.set_defaults(command=show_draws)
    command = commands.add_parser("collect")
    command.add_argument("folder", type=Path)
    command.add_argument("--cpu", type=Path)
    command.set_defaults(command=make_numbers)
    arguments = parser.parse_args()
    arguments.command(arguments)


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
