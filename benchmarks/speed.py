"""Speed: against peers where they do the same thing, against a bar where nobody does, against another source tree.

    python benchmarks/speed.py [likelihood|ask|loop|thinking|huge|import|lbfgs|tables|all] [--quick] [--ard]
    python benchmarks/speed.py before-after --base OTHER/src [--repeats 5]

Each part prints one Markdown table. Every comparison is a ratio from a single run: both sides take turns on the same
data, so that other work on the machine slows both, and all arithmetic runs on one thread. Peers are optional
(`pip install scikit-learn botorch`); one that is missing gets a row that says so. `lbfgs` puts scipy's L-BFGS-B in the
place of ours; `before-after` times whole runs of this source tree and of another. Exit status 1: a bar was missed.
"""

from __future__ import annotations

import os

# read once, when numpy loads its BLAS
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

import argparse
import platform
import subprocess
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import scipy.optimize

from mctsvs.bench.problems import Problem, data, families, make
from mctsvs.bench.record import Clock
from mctsvs.bench.record import make_optimizer as optimizer
from mctsvs.bench.sklearn_bo import regressor, with_solver
from mctsvs.gp.kernels import Joint
from mctsvs.gp.likelihood import JITTER, Likelihood
from mctsvs.gp.optimize_acqf import quasi_random
from mctsvs.gp.quasi_newton import minimise
from mctsvs.gp.standardize import standardise
from mctsvs.methods.history import History
from mctsvs.methods.solvers import Subspace
from mctsvs.methods.solvers.bo import BayesianOptimisation, BOOptions
from mctsvs.utils.validation import Array, InputError
from turns import rounds, spend

SOURCE = Path(__file__).resolve().parents[1] / "src"
WHOLE = {"auto": "Hartmann6_500", "mcts-vs-bo": "Hartmann6_300", "bo-dsp": "Hartmann6_300"}
HEAVY = ("torch", "sklearn", "matplotlib", "optuna", "pandas")


@dataclass(frozen=True)
class Row:
    """One line of a table; `met` is None where there is no bar or no peer."""

    what: str
    ours: str = "–"
    theirs: str = "–"
    ratio: str = "–"
    bar: str = "–"
    met: bool | None = None

    def __str__(self) -> str:
        met = {True: "yes", False: "NO", None: "–"}[self.met]
        return f"| {self.what} | {self.ours} | {self.theirs} | {self.ratio} | {self.bar} | {met} |"


def compared(what: str, ours: float, theirs: float, times: float, note: str = "") -> Row:
    """Seconds of both sides; the bar is a ratio of at most 1/`times`."""
    ratio = f"1/{theirs / ours:.2f}"
    return Row(what, show(ours), show(theirs) + note, ratio, f"<= 1/{times:g}", ours * times <= theirs)


def show(spent: float) -> str:
    return f"{spent:.2f} s" if spent >= 1.0 else f"{1e3 * spent:.2f} ms"


def missing(what: str, package: str, times: float) -> Row:
    return Row(what, theirs=f"not installed (pip install {package})", bar=f"<= 1/{times:g}")


def seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def values_of(problem: Problem) -> Callable[[Any], float]:
    return lambda trial: problem(trial.x)


def levy_data(n: int, d: int, rng: np.random.Generator) -> tuple[Callable[[Array], float], History]:
    """Levy on the unit cube of d variables, all of which matter, and n points of it."""
    problem, history = make(f"Levy{d}_{d}"), History(d)
    low, high = problem.bounds.T

    def levy(z: Array) -> float:
        return float(problem(low + (high - low) * z))

    for z in quasi_random(n, d, rng):
        history.add(z, levy(z))
    return levy, history


def likelihood(options: argparse.Namespace) -> list[Row]:
    """One evaluation of the log marginal likelihood and its gradient: n=400, d=20, Matern-5/2, a lengthscale each."""
    n, d = 400, 20
    _, history = levy_data(n, d, np.random.default_rng(0))
    X, y = history.X, standardise(history.y)
    theta = np.log(np.append(np.linspace(0.5, 1.5, d), [1.3, 1e-3]))  # lengthscales, outputscale, noise
    ours = Likelihood(Joint("matern52"), X, y)
    rows = []
    for package, module, bar in (("scikit-learn", "sklearn", 12), ("botorch", "botorch", 3)):
        what = f"likelihood and gradient, n={n}, d={d}, against {package}"
        if find_spec(module) is None:
            rows.append(missing(what, package, bar))
            continue
        peer = (sklearn_likelihood if module == "sklearn" else botorch_likelihood)(X, y, theta)
        if not np.isclose(peer(), ours(theta)[0], rtol=1e-6):  # the same number, or the comparison means nothing
            raise RuntimeError(f"{package} computes {peer()}, we compute {ours(theta)[0]}: not the same likelihood")
        sides: tuple[Callable[[], object], ...] = (lambda: ours(theta), peer)
        turns = range(5 if options.quick else 25)  # of three calls for each side: a fit makes many in a row
        times = [[[seconds(call) for _ in range(3)] for call in sides] for _ in turns]
        mine, its = np.median(times, axis=(0, 2)).tolist()
        rows.append(compared(what, mine, its, bar))
    return rows


def sklearn_likelihood(X: Array, y: Array, theta: Array) -> Callable[[], float]:
    gp = regressor(np.ones(X.shape[1]), alpha=JITTER, optimizer=None).fit(X, y)
    own_order = np.concatenate([theta[-2:-1], theta[:-2], theta[-1:]])  # outputscale first

    def call() -> float:
        value, _ = gp.log_marginal_likelihood(own_order, eval_gradient=True, clone_kernel=False)
        return -float(value)

    return call


def botorch_likelihood(X: Array, y: Array, theta: Array) -> Callable[[], float]:
    import torch
    from botorch.models import SingleTaskGP
    from gpytorch.kernels import MaternKernel, ScaleKernel
    from gpytorch.likelihoods import GaussianLikelihood
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.set_num_threads(1)
    n, d = X.shape
    kernel = ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=d))
    data = torch.tensor(X), torch.tensor(y)[:, None]
    model = SingleTaskGP(*data, likelihood=GaussianLikelihood(), covar_module=kernel, outcome_transform=None).double()
    kernel.base_kernel.lengthscale = torch.tensor(np.exp(theta[:d]))
    kernel.outputscale, model.likelihood.noise = float(np.exp(theta[d])), float(np.exp(theta[-1])) + JITTER
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    mll.train()

    def call() -> float:
        mll.zero_grad()
        loss = -mll(model(*model.train_inputs), model.train_targets)
        loss.backward()
        return float(n * loss.item())

    return call


def ask(options: argparse.Namespace) -> list[Row]:
    """One ask of `bo` around n=300, d=20: the mean over consecutive asks, the refits among them included."""
    d, asks = 20, 6 if options.quick else 30
    what = f"one ask of bo, n=300, d={d}, against botorch"
    if find_spec("botorch") is None:
        return [missing(what, "botorch", 60)]
    peer_turns = {asks // 2} if options.quick else {5, 15, 25}
    rng = np.random.default_rng(0)
    levy, history = levy_data(300 - asks // 2, d, rng)
    solver, everything, nothing = BayesianOptimisation(BOOptions()), np.arange(d), np.empty((0, d))
    peer = botorch_ask()
    peer(history.X[:20], history.y[:20])  # imports at first use are nobody's asking time
    ours, theirs = [], []
    for turn in range(asks):
        if turn in peer_turns:
            theirs.append(seconds(lambda: peer(history.X, history.y)))
        started = time.perf_counter()
        (z,) = solver.propose(1, Subspace(history, everything, nothing), rng)
        ours.append(time.perf_counter() - started)
        history.add(z, levy(z))
    return [compared(what, float(np.mean(ours)), float(np.median(theirs)), 60)]


def botorch_ask() -> Callable[[Array, Array], object]:
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.models.utils import gpytorch_modules
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.set_num_threads(1)
    torch.manual_seed(0)

    def call(X: Array, y: Array) -> object:
        values = torch.tensor(y)[:, None]
        kernel = gpytorch_modules.get_matern_kernel_with_gamma_prior(X.shape[1])  # ours; faster than its default
        model = SingleTaskGP(torch.tensor(X), values, covar_module=kernel)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            cube = torch.tensor([[0.0], [1.0]], dtype=torch.double).repeat(1, X.shape[1])
            surface = LogExpectedImprovement(model, best_f=values.max())
            return optimize_acqf(surface, cube, q=1, num_restarts=10, raw_samples=512)

    return call


def loop(options: argparse.Namespace) -> list[Row]:
    """Optimiser seconds of whole mcts-vs-bo runs on Hartmann6_300: our solver, and scikit-learn's in its place."""
    problem, budget, seed = make("Hartmann6_300"), 150 if options.quick else 600, 2021
    what = f"mcts-vs-bo, {problem.name}, {budget} evaluations, against its loop with scikit-learn"
    if find_spec("sklearn") is None:
        return [missing(what, "scikit-learn", 8)]
    ours, theirs = optimizer(problem, "mcts-vs-bo", seed=seed), with_solver(problem, "mcts", seed, ard=options.ard)
    clocks = Clock(), Clock()
    turns = [rounds(opt, values_of(problem), budget, c) for opt, c in zip((ours, theirs), clocks, strict=True)]
    for _ in zip(*turns, strict=True):
        pass
    note = " (a lengthscale each)" if options.ard else " (one lengthscale)"
    best = Row("its best value (no bar: one seed)", f"{ours.best.value:.4f}", f"{theirs.best.value:.4f}")
    return [compared(what, clocks[0].wall, clocks[1].wall, 8, note), best]


def thinking(options: argparse.Namespace) -> list[Row]:
    """Processor time of auto for one evaluation, by kind of problem."""
    budget, rows = 60 if options.quick else 600, []
    for kind, name, noise in (
        ("sparse", "Hartmann6_500", 0.0),
        ("dense", "Levy60", 0.0),
        ("all variables modelled", "Hartmann6_500", 0.1),
    ):
        problem = make(name, shuffle=True, shift=True, noise=noise, seed=0)
        opt = optimizer(problem, "auto", seed=1000)
        spent = spend(problem, opt, budget).processor / budget
        what = f"auto, {kind} ({name}, noise {noise:g}), mean of {budget} evaluations; best {opt.best.value:.4g}"
        rows.append(Row(what, show(spent)))
    return rows


def huge(options: argparse.Namespace) -> list[Row]:
    """100,000 variables: a run of auto; of mcts-vs-rs an ask and tell, and the memory that a further point costs."""
    D, points = 100_000, 60 if options.quick else 200
    rows = []
    for seed in range(1 if options.quick else 3):
        *_, (spent, best, memory) = elsewhere(SOURCE, "auto", f"Hartmann6_{D}", points, seed)
        what = f"auto, D={D:,}, {points} evaluations, seed {seed}: best {best:.4f}, {memory:.2f} GB at most"
        rows.append(Row(what, show(spent)))
    problem = make(f"Hartmann6_{D}")
    clock, stamps = Clock(), [0.0]
    for _ in rounds(optimizer(problem, "mcts-vs-rs", seed=2021), values_of(problem), points, clock):
        stamps.append(clock.wall)
    each = np.diff(stamps)
    for name, value in (("median", np.median(each)), ("95th percentile", np.quantile(each, 0.95))):
        what = f"ask and tell of mcts-vs-rs, D={D:,}, {points} evaluations: {name}"
        rows.append(Row(what, show(float(value)), bar="<= 50 ms", met=bool(value <= 0.05)))
    whole, half = growth(D, points), growth(D // 2, points)
    what = f"growth of peak memory per point / 8 D bytes, {points // 2} to {points} points: D={D:,}, D={D // 2:,}"
    ratio = whole / half  # 1: proportional to D
    return [*rows, Row(what, f"{whole:.2f}, {half:.2f}", "–", f"{ratio:.2f}", "1 +- 0.1", abs(ratio - 1.0) <= 0.1)]


def growth(D: int, points: int) -> float:
    """Peak traced memory added by each point of the second half of a run, in units of one vector of D doubles."""
    problem = make(f"Hartmann6_{D}")
    tracemalloc.start()
    opt = optimizer(problem, "mcts-vs-rs", seed=2021)
    turns = rounds(opt, values_of(problem), points)
    peaks = [tracemalloc.get_traced_memory()[1] for _ in turns]
    tracemalloc.stop()
    return (peaks[-1] - peaks[points // 2 - 1]) / (points - points // 2) / (8 * D)


def importing(options: argparse.Namespace) -> list[Row]:
    """`import mctsvs` and the first use of `mctsvs.Optimizer`, numpy included, in fresh processes."""
    script = (
        "import sys, time; started = time.perf_counter(); import mctsvs; mctsvs.Optimizer; "
        f"print(time.perf_counter() - started, *[name for name in {HEAVY!r} if name in sys.modules])"
    )
    times, loaded = [], set()
    for _ in range(3 if options.quick else 7):
        spent, *heavy = subprocess.check_output([sys.executable, "-c", script], text=True).split()
        times.append(float(spent))
        loaded.update(heavy)
    median = float(np.median(times))
    first = Row("import mctsvs; mctsvs.Optimizer", show(median), bar="<= 0.4 s", met=median <= 0.4)
    return [first, Row(f"of {', '.join(HEAVY)}: loaded", " ".join(loaded) or "none", bar="none", met=not loaded)]


RUN = """
import resource, sys, time, mctsvs
from mctsvs.bench.problems import Problem, make
method, name, budget, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
problem = make(name, shuffle=True, seed=seed)
class Done(Exception): pass
def run(budget, report):
    values, inside, started = [], 0.0, time.process_time()
    def f(x):
        nonlocal inside
        before = time.process_time()
        values.append(problem(x))
        inside += time.process_time() - before
        return values[-1]
    def told(opt, trial):
        if report and (len(values) % 10 == 0 or len(values) == budget):
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
            print(time.process_time() - started - inside, max(values), memory, flush=True)
            input()
        if len(values) == budget:  # before anything is said of the variables
            raise Done
    try:
        mctsvs.maximize(f, problem.bounds, budget=budget, seed=seed, method=method, callback=told)
    except Done:
        pass
run(min(100, budget), False)  # imports at first use are nobody's time
run(budget, True)
"""


def elsewhere(source: Path, method: str, name: str, budget: int, seed: int = 0) -> Iterator[tuple[float, ...]]:
    """Processor seconds, best value and most memory in GB so far of a run with the library of a source tree.

    The run goes on for ten evaluations whenever it is asked for the next of them: several take turns, and what else
    the machine does slows all. It uses nothing but `mctsvs.maximize`, so that trees far apart understand it.
    """
    environment = {**os.environ, "PYTHONPATH": str(source)}
    call = [sys.executable, "-c", RUN, method, name, str(budget), str(seed)]
    with subprocess.Popen(call, env=environment, stdin=-1, stdout=-1, text=True, bufsize=1) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in process.stdout:
            yield tuple(map(float, line.split()))
            process.stdin.write("\n")
    if process.returncode:
        raise SystemExit(f"the run of {method} with {source} failed")


def before_after(options: argparse.Namespace) -> list[Row]:
    """Whole runs of this tree and of another, in turns."""
    if options.base is None or not (options.base / "mctsvs").is_dir():
        raise SystemExit(f"--base {options.base} holds no mctsvs: give the folder of a source tree, such as OTHER/src")
    rows = []
    for (method, name), budget in zip(WHOLE.items(), (600, 600, 200), strict=True):
        count, repeats = (60, 1) if options.quick else (budget, options.repeats)
        pairs = []
        for _ in range(repeats):
            runs = [elsewhere(tree, method, name, count) for tree in (SOURCE, options.base.resolve())]
            *_, last = zip(*runs, strict=True)
            pairs.append([seconds for seconds, _, _ in last])
        here, base = np.median(pairs, axis=0).tolist()
        what = f"{method}, {name}, {count} evaluations, processor seconds: here, base (medians of {repeats})"
        rows.append(Row(what, show(here), show(base), f"{here / base:.3f}", "<= 1.03", here <= 1.03 * base))
    return rows


def by_scipy(function: Any, theta: Array, low: Array, high: Array, pairs: Any, **limits: Any) -> tuple[Array, float]:
    """scipy's L-BFGS-B, called as our own; it keeps no curvature between calls."""
    start, box, most = np.clip(theta, low, high), scipy.optimize.Bounds(low, high), limits.get("iterations", 30)
    minimize: Any = scipy.optimize.minimize
    found = minimize(function, start, method="L-BFGS-B", jac=True, bounds=box, options={"maxiter": most})
    return found.x, float(found.fun)


def lbfgs(options: argparse.Namespace) -> list[Row]:
    """Processor seconds of whole runs, with our L-BFGS and with scipy's in its place, in turns."""
    rows = []
    for (method, name), budget in zip(WHOLE.items(), (150, 600, 80), strict=True):
        count, problem = 40 if options.quick else budget, make(name, shuffle=True, seed=0)
        spend(problem, optimizer(problem, method, seed=0), 40)  # loads all modules that there are to be patched
        loaded = [module for key, module in sys.modules.items() if key.startswith("mctsvs.")]
        using: list[Any] = [module for module in loaded if vars(module).get("minimise") is minimise]
        whose, clocks = (minimise, by_scipy), (Clock(), Clock())
        opts = [optimizer(problem, method, seed=0) for _ in whose]
        turns = [rounds(opt, values_of(problem), count, c) for opt, c in zip(opts, clocks, strict=True)]
        for search, turn in [*zip(whose, turns, strict=True)] * count:
            for module in using:
                module.minimise = search
            next(turn)
        for module in using:
            module.minimise = minimise
        ours, theirs = (clock.processor for clock in clocks)
        what = f"{method}, {name}, {count} evaluations, with our L-BFGS and with scipy's"
        rows.append(Row(what, show(ours), show(theirs), f"1/{theirs / ours:.2f}", "< 1", ours < theirs))
    return rows


def tables(options: argparse.Namespace) -> list[Row]:
    """Problems that look their values up: to load one from its file, checksum included, and one evaluation."""
    if options.data is not None:
        data.set_directory(options.data)
    make("Levy10_20")(np.zeros(20))  # what the first call loads is not the table's
    rows = []
    for family in (family for family in families() if family.kind == "table"):
        data.forget()
        started = time.perf_counter()
        try:
            problem = make(family.example)
        except InputError as error:
            rows.append(Row(f"{family.example}: no data ({str(error).split(':')[0]})"))
            continue
        points = np.random.default_rng(0).random((100 if options.quick else 1000, problem.dimension))
        problem(points[0])
        loaded = time.perf_counter() - started
        times = [seconds(partial(problem, x)) for x in points]
        what = f"{problem.name}, {problem.dimension} variables, best {problem.optimum:.6g}: load; evaluate, 99 % within"
        mean, most = (f"{1e6 * float(spent):.0f} us" for spent in (np.mean(times), np.percentile(times, 99)))
        rows.append(Row(what, f"{show(loaded)}; {mean}, {most}"))
    return rows


PARTS = {"likelihood": likelihood, "ask": ask, "loop": loop, "thinking": thinking, "huge": huge}
PARTS |= {"import": importing, "lbfgs": lbfgs, "tables": tables}


def main() -> int:
    parser = argparse.ArgumentParser(description="Speed of mctsvs, as ratios to its peers.")
    parser.add_argument("part", nargs="?", default="all", choices=[*PARTS, "before-after", "all"])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions: a smoke test, not a measurement")
    parser.add_argument("--ard", action="store_true", help="loop: the peer fits one lengthscale per variable")
    parser.add_argument("--data", metavar="DIR", help="tables: where they are")
    parser.add_argument("--base", type=Path, metavar="SRC", help="before-after: the other tree's folder with mctsvs")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="before-after: runs of each tree")
    given = parser.parse_args()
    print(f"Python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}, one thread\n")
    missed = False
    for name in PARTS if given.part == "all" else [given.part]:
        rows = (before_after if name == "before-after" else PARTS[name])(given)
        missed |= any(row.met is False for row in rows)
        print(f"### {name}\n\n| what | ours | theirs | ratio | bar | met |\n|---|---|---|---|---|---|")
        print(*rows, sep="\n", end="\n\n", flush=True)
    return int(missed and not given.quick)  # the bars are for full runs


if __name__ == "__main__":
    sys.exit(main())
