"""The measured cost of fitting and of maximising the acquisition, beside the analysis of Appendix B.2.

    fitting a Gaussian process        O(t^3 + t^2 d_t)               one evaluation of the likelihood and its gradient
    maximising the acquisition        O(m (t^2 + t d_t + d_t^2))     m rounds of a gradient and a quasi-Newton update

with t points and d_t selected variables. Timed are one evaluation of the likelihood, one gradient of the acquisition
(no update, so no d_t^2), and one whole maximisation as the library does it: m is the pool of candidates, valued at
once, plus the steps of the climb from the best. Our update keeps few curvature pairs and costs O(d_t).

Exponents are slopes of log seconds against log t and log d_t.

The page of the measured complexity: exponents and fitted constants beside the analysis.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from mctsvs.bench import figures
from mctsvs.bench.comparison import markdown_table
from mctsvs.bench.paper.entry import PaperEntry
from mctsvs.bench.paper.page_head import Provenance, head
from mctsvs.bench.results import MADE, NOTE, Numbers
from mctsvs.gp.acquisition import AcquisitionFunction, beta_schedule, upper_confidence_bound
from mctsvs.gp.kernels import Joint
from mctsvs.gp.likelihood import Likelihood
from mctsvs.gp.optimize_acqf import maximise
from mctsvs.gp.posterior import Posterior
from mctsvs.utils.validation import Array

POINTS = (50, 100, 200, 400, 800, 1600)
VARIABLES = (2, 5, 10, 20, 50, 100, 200, 500)
QUICK_POINTS = (50, 100, 200, 400)
QUICK_VARIABLES = (2, 10, 50, 200)
TERMS: dict[str, tuple[tuple[int, int], ...]] = {  # exponents of t and d_t of each term of the analysis
    "fit": ((3, 0), (2, 1)),
    "gradient": ((2, 0), (1, 1)),
    "maximise": ((2, 0), (1, 1), (0, 2)),
}
ANALYSIS = {"fit": "t³ + t² d", "gradient": "t² + t d", "maximise": "m (t² + t d + d²)"}
WHAT = {
    "fit": "likelihood and gradient, once",
    "gradient": "gradient of UCB, once",
    "maximise": "maximising UCB, whole",
}
CLIMBS = 3  # maximisations averaged, each with a pool of its own: climbs differ in length
PASSES = 2  # over all sizes: other work that disturbs one is gone in the next


@dataclass(frozen=True)
class Measurement:
    """Processor seconds of one call: the least of several, the one least disturbed by other work."""

    what: str
    t: int
    d: int
    seconds: float
    steps: float = 0.0  # gradients that one maximisation asked for


def measure(points: Sequence[int] = POINTS, variables: Sequence[int] = VARIABLES) -> list[Measurement]:
    """All costs for every number of points and of variables, in a process of its own on one BLAS thread.

    How many threads there are is settled when numpy is loaded, and here it has been.
    """
    call = [sys.executable, "-m", "mctsvs.bench.paper.complexity", json.dumps([list(points), list(variables)])]
    done = subprocess.run(call, env=one_thread(), stdout=subprocess.PIPE, text=True, check=True)
    return [Measurement(**row) for row in json.loads(done.stdout)]


def one_thread() -> dict[str, str]:
    """The environment of a process that imports what this one does, on one thread."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **threads}


def least(work: Callable[[], object], patience: float = 0.02) -> float:
    """Processor seconds of the quickest of repeated calls, three at least, for about so many seconds."""
    work()
    started = time.perf_counter()
    found: list[float] = []
    while len(found) < 3 or time.perf_counter() - started < patience:
        before = time.process_time()
        work()
        found.append(time.process_time() - before)
    return min(found)


def measured_here(t: int, d: int, most: int) -> list[Measurement]:
    """All costs for t points and d of `most` variables, on however many threads this process has."""
    rng = np.random.default_rng([t, d])
    X = rng.random((t, d))
    y = np.sin(3.0 * X[:, 0]) + 0.1 * rng.standard_normal(t)
    y = (y - y.mean()) / y.std()
    theta = np.append(np.full(d, np.log(0.4 * np.sqrt(d))), [0.0, np.log(1e-2)])
    likelihood = Likelihood(Joint("se"), X, y)
    surface = Counted(Posterior.of(Joint("se"), theta, X, y), upper_confidence_bound(beta_schedule(t, d, most)))
    queries, incumbents = rng.random((10, d)), X[np.argsort(-y)[:3]]

    def climb() -> None:
        surface.gradients = 0
        for seed in range(CLIMBS):
            maximise(surface, incumbents, np.random.default_rng(seed))

    fit = least(lambda: likelihood(theta))
    gradient = least(lambda: [surface.value_and_gradient(z[None]) for z in queries])
    whole = least(climb)
    return [
        Measurement("fit", t, d, fit),
        Measurement("gradient", t, d, gradient / len(queries)),
        Measurement("maximise", t, d, whole / CLIMBS, surface.gradients / CLIMBS),
    ]


class Counted(AcquisitionFunction):
    """A surface that counts the gradients it is asked for."""

    gradients = 0

    def value_and_gradient(self, Z: Array) -> tuple[Array, Array]:
        self.gradients += len(Z)
        return super().value_and_gradient(Z)


def power_law(x: Sequence[float], seconds: Sequence[float]) -> tuple[float, float]:
    """Constant and exponent: the straight line through log seconds against log x."""
    exponent, constant = np.polyfit(np.log(x), np.log(seconds), 1)
    return float(np.exp(constant)), float(exponent)


def upper(values: Sequence[int]) -> Sequence[int]:
    """The half over which exponents are fitted: lower down, what every call costs anyway hides them."""
    return values[len(values) // 2 :]


def fitted(measured: Sequence[Measurement], what: str) -> tuple[Array, Callable[[float, float], float]]:
    """The analysis' constants, one for each term and one for what a call costs anyway, by relative least squares."""
    from scipy.optimize import nnls

    own = [m for m in measured if m.what == what]
    powers = (*TERMS[what], (0, 0))
    seconds = np.array([m.seconds for m in own])
    columns = np.array([[float(m.t) ** p * float(m.d) ** q for p, q in powers] for m in own])
    constants, _ = nnls(columns / seconds[:, None], np.ones(len(own)))

    def model(t: float, d: float) -> float:
        return float(sum(c * t**p * d**q for c, (p, q) in zip(constants, powers, strict=True)))

    return np.asarray(constants), model


@dataclass(frozen=True)
class Slope:
    """An exponent as measured and as the fitted analysis has it over the same range."""

    what: str
    variable: str  # t or d
    at: str  # what was held fixed
    over: str
    measured: float
    analysis: float
    largest: tuple[int, int]  # powers of t and d of the fitted term that is largest where the range ends
    share: float  # of that term in the fitted seconds there


def slopes(measured: Sequence[Measurement]) -> list[Slope]:
    """In t at the fewest and the most variables, in d at the fewest and the most points; over the upper half."""
    found = []
    for what, terms in TERMS.items():
        own = {(m.t, m.d): m.seconds for m in measured if m.what == what}
        points, variables = sorted({t for t, _ in own}), sorted({d for _, d in own})
        constants, model = fitted(measured, what)
        lines = [("t", f"d = {d}", [(t, d) for t in upper(points)]) for d in (variables[0], variables[-1])]
        lines += [("d", f"t = {t}", [(t, d) for d in upper(variables)]) for t in (points[0], points[-1])]
        for axis, at, cells in lines:
            x = [cell["td".index(axis)] for cell in cells]
            _, seen = power_law(x, [own[cell] for cell in cells])
            _, said = power_law(x, [model(*cell) for cell in cells])
            t, d = cells[-1]
            parts = {(p, q): c * t**p * d**q for c, (p, q) in zip(constants, (*terms, (0, 0)), strict=True)}
            largest = max(parts, key=lambda powers: parts[powers])
            share = float(parts[largest] / sum(parts.values()))
            found.append(Slope(what, axis, at, f"{axis} = {x[0]} to {x[-1]}", seen, said, largest, share))
    return found


def misfit(measured: Sequence[Measurement], what: str) -> float:
    """Median of |fitted / measured - 1|."""
    _, model = fitted(measured, what)
    return float(np.median([abs(model(m.t, m.d) / m.seconds - 1.0) for m in measured if m.what == what]))


if __name__ == "__main__":
    many, wide = json.loads(sys.argv[1])
    passes = [[m for t in many for d in wide for m in measured_here(t, d, max(wide))] for _ in range(PASSES)]
    print(json.dumps([asdict(min(same, key=lambda m: m.seconds)) for same in zip(*passes, strict=True)]))


AXES = {"t": "points $t$", "d": "variables $d$"}
MOST = 90  # per cent from which a term is said to dominate


def plots(measured: Sequence[Measurement]) -> list[figures.Plot]:
    """Every cost against t for some d, then against d for some t; the lines are power laws fitted to the upper half."""
    drawn = []
    for axis, other in ("td", "dt"):
        for what in TERMS:
            own = {(m.t, m.d) if axis == "t" else (m.d, m.t): 1e3 * m.seconds for m in measured if m.what == what}
            along, fixed = sorted({x for x, _ in own}), sorted({value for _, value in own})
            curves = []
            for value in (fixed[0], fixed[len(fixed) // 2], fixed[-1]):
                y = np.array([own[x, value] for x in along])
                under = np.array(upper(along), dtype=np.float64)
                constant, exponent = power_law(under.tolist(), y[-len(under) :].tolist())
                label = f"${other}$ = {value}: ${axis}^{{{exponent:.2f}}}$"
                law = under, constant * under**exponent
                curves.append(figures.Curve(label, np.array(along, dtype=np.float64), y, np.full(len(y), np.nan), law))
            name = "milliseconds" if what == "fit" else ""
            drawn.append(figures.Plot(WHAT[what], AXES[axis], name, curves, xscale="log", yscale="log"))
    return drawn


def text(entry: PaperEntry, measured: Sequence[Measurement], making: Provenance, day: str = "") -> str:
    found = slopes(measured)
    rows = [
        [
            WHAT[s.what],
            f"O({ANALYSIS[s.what]})",
            s.variable,
            f"{s.at}, {s.over}",
            f"{s.measured:.2f}",
            f"{s.analysis:.2f}",
            f"{_term(*s.largest) or 'constant'}, {100 * s.share:.0f} %",
        ]
        for s in found
    ]
    header = ["cost", "analysis", "variable", "where", "measured exponent", "the analysis' there", "largest term"]
    steps = [m.steps for m in measured if m.what == "maximise"]
    dominated = sum(round(100 * s.share) >= MOST for s in found)
    lead = (
        "Processor seconds on one BLAS thread. Exponents are slopes of log seconds over the upper half of the range. "
        '"The analysis\' there" is the slope of its terms with fitted constants and a constant for what every call '
        'costs, over the same range; "largest term" is the one of them that costs most where the range ends, and its '
        f"share there. One term makes up {MOST} % or more in {dominated} of {len(found)} rows; elsewhere "
        "several count. A whole maximisation is the library's with its defaults: "
        f"m is a pool of 256 candidates, valued at once, and {min(steps):.0f} to {max(steps):.0f} steps of a climb "
        f"(means of {CLIMBS}).\n\n"
    )
    fits = []
    for what in TERMS:
        constants, _ = fitted(measured, what)
        terms = [*TERMS[what], (0, 0)]
        shown = " + ".join(
            f"{c:.2g} {_term(p, q)}".strip() for c, (p, q) in zip(constants, terms, strict=True) if c > 0
        )
        wrong = misfit(measured, what)
        fits.append(f"- {WHAT[what]}: {shown} seconds; median error {100 * wrong:.0f} %")
    made = Numbers([(MADE, making.command, day), *((NOTE, line) for line in making.lines(entry))])
    page = head(entry, made) + lead + markdown_table(header, rows)
    return page + "\n\nFitted:\n\n" + "\n".join(fits) + "\n"


def _term(p: int, q: int) -> str:
    powers = {0: "", 1: "{}", 2: "{}²", 3: "{}³"}
    return " ".join(filter(None, (powers[p].format("t"), powers[q].format("d"))))
