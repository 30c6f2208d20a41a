"""Whether what a run states is true: which variables act, whether there is noise, what the recommended point is worth.

    python benchmarks/statements.py variables [--seeds 100-120] [--families additive,wide] [--explain 0.15]
    python benchmarks/statements.py cost [--seeds 100-120]
    python benchmarks/statements.py exact [--seeds 0-10]
    python benchmarks/statements.py noise [--seeds 100-125]

variables   200 evaluations of functions whose active variables are known, at random places: which are named
cost        the best value of these runs, and of runs that keep no evaluation for proofs
exact       60 evaluations of smooth, rough and failing functions: none may be called noisy; then the same under noise
noise       120 evaluations of noisy functions: the stated value of the recommended point against the true one

`--processes 16` makes as many runs at once.
"""

from __future__ import annotations

import argparse
import hashlib
import os

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import Pool
from typing import Any

import numpy as np

from mctsvs import Categorical, Float, Integer, Optimizer

Params = dict[str, Any]


@dataclass
class Family:
    """A function of variables x0, x1, ..., those that act and those that act hardly."""

    space: Params
    f: Callable[[Params], Any]
    active: list[str]
    weak: list[str] = field(default_factory=list)
    batch: int = 1


def vector(n: int, f: Callable[[Any], Any], active: Any, weak: Any = (), kinds: dict[int, Any] | None = None) -> Family:
    """Of a function of the unit cube; integers and categories are steps of it."""
    names, kinds = [f"x{i}" for i in range(n)], kinds or {}
    space = {name: kinds.get(i, Float(0.0, 1.0)) for i, name in enumerate(names)}

    def call(p: Params) -> Any:
        x = np.empty(n)
        for i, name in enumerate(names):
            kind, value = kinds.get(i), p[name]
            count = 1 if kind is None else 6 if isinstance(kind, Integer) else 4
            x[i] = value if kind is None else ((value if isinstance(kind, Integer) else int(value[1:])) + 0.5) / count
        return f(x)

    return Family(space, call, [names[i] for i in active], [names[i] for i in weak])


def additive(seed: int, n: int = 120) -> Family:
    rng = np.random.default_rng(1000 + seed)
    a, c, w = rng.permutation(n)[:6], rng.uniform(0.1, 0.9, 6), rng.uniform(1, 3, 6)
    return vector(n, lambda x: float((w * (x[a] - c) ** 2).sum()), a)


def wide(seed: int) -> Family:
    return additive(seed, 300)


def product(seed: int) -> Family:
    rng = np.random.default_rng(1000 + seed)
    a, c = rng.permutation(120)[:5], rng.uniform(0.1, 0.9, 3)

    def f(x: Any) -> float:
        own = 2 * abs(x[a[0]] - c[0]) + 3 * (x[a[1]] - c[1]) ** 2 + 2 * (x[a[2]] - c[2]) ** 2
        return float(own + x[a[3]] * x[a[4]])

    return vector(120, f, a)


def maximum(seed: int) -> Family:
    rng = np.random.default_rng(1000 + seed)
    a, c, w = rng.permutation(120)[:6], rng.uniform(0.1, 0.9, 6), rng.uniform(1, 3, 6)
    return vector(120, lambda x: float((w * np.abs(x[a] - c)).max()), a)


def plateau(seed: int) -> Family:
    a = np.random.default_rng(1000 + seed).permutation(120)[:5]

    def f(x: Any) -> float:
        sides = max(x[a[0]] - 0.2, 0) * 4 + max(x[a[1]] + x[a[2]] - 1, 0)
        return float(sides + (x[a[3]] - 0.5) ** 2 * (x[a[4]] > 0.5))

    return vector(120, f, a)


def steps(seed: int) -> Family:
    rng = np.random.default_rng(1000 + seed)
    a, c, w = rng.permutation(120)[:6], rng.uniform(0.1, 0.9, 6), rng.uniform(1, 3, 6)
    return vector(120, lambda x: float((w * np.floor(5 * np.abs(x[a] - c))).sum()), a)


def gate(seed: int) -> Family:
    rng = np.random.default_rng(1000 + seed)
    a, c = rng.permutation(120)[:7], rng.uniform(0.1, 0.9, 6)

    def f(x: Any) -> float:
        if x[a[0]] > 0.5:
            return float(((x[a[1:4]] - c[:3]) ** 2).sum() * 3)
        return float(0.3 + ((x[a[4:7]] - c[3:]) ** 2).sum() * 2)

    return vector(120, f, a)


def pairs(seed: int) -> Family:
    """Variables that act only together."""
    a = np.random.default_rng(1000 + seed).permutation(120)[:6]

    def g(t: float) -> float:
        return max(0.0, t - 0.4) / 0.6

    return vector(120, lambda x: float(-sum(g(x[a[2 * i]]) * g(x[a[2 * i + 1]]) * (i + 1) for i in range(3))), a)


def strongweak(seed: int) -> Family:
    rng = np.random.default_rng(1000 + seed)
    a, c, w = rng.permutation(120)[:5], rng.uniform(0.1, 0.9, 120), np.full(120, 0.002)
    w[a] = rng.uniform(1, 3, 5)
    return vector(120, lambda x: float((w * (x - c) ** 2).sum()), a, np.setdiff1d(np.arange(120), a))


def constrained(seed: int) -> Family:
    """The same with two measured constraints."""
    rng = np.random.default_rng(1000 + seed)
    a, c, w = rng.permutation(120)[:5], rng.uniform(0.1, 0.9, 120), np.full(120, 0.002)
    w[a] = rng.uniform(1, 3, 5)

    def f(x: Any) -> tuple[float, dict[str, float]]:
        g = float(x[a[0]] + x[a[1]] - c[a[0]] - c[a[1]] + 0.2)
        return float((w * (x - c) ** 2).sum()), {"g": g, "h": float(0.5 - x[a[2]] - x[a[3]])}

    return vector(120, f, a, np.setdiff1d(np.arange(120), a))


def rotated(seed: int) -> Family:
    """All 60 variables act, in four directions."""
    rng = np.random.default_rng(1000 + seed)
    R = np.linalg.qr(rng.standard_normal((60, 4)))[0].T
    c, w = rng.uniform(0.3, 0.7, 60), np.array([4.0, 2, 1, 1])
    return vector(60, lambda x: float((w * (R @ (x - c)) ** 2).sum()), range(60))


def alike(seed: int) -> Family:
    c = np.random.default_rng(1000 + seed).uniform(0.2, 0.8, 100)
    return vector(100, lambda x: float(((x - c) ** 2).sum()), range(100))


def mixed(seed: int) -> Family:
    rng = np.random.default_rng(1000 + seed)
    kinds: dict[int, Any] = {i: Integer(0, 5) for i in range(30, 45)}
    kinds |= {i: Categorical(["v0", "v1", "v2", "v3"]) for i in range(45, 60)}
    a = np.r_[rng.permutation(30)[:3], 30 + rng.permutation(15)[:2], 45 + rng.permutation(15)[:2]]
    c, t = rng.uniform(0.1, 0.9, 5), rng.uniform(0, 1, (2, 4))
    t -= t.min(1)[:, None]

    def f(x: Any) -> float:
        return float((2 * (x[a[:5]] - c) ** 2).sum() + sum(t[j, int(x[a[5 + j]] * 4)] for j in range(2)))

    return vector(60, f, a, kinds=kinds)


def _hundred(seed: int) -> tuple[Family, Any, list[str], Any, Any]:
    rng = np.random.default_rng(5000 + seed)
    names = [f"x{i}" for i in rng.permutation(100)[:8]]
    c, w = rng.uniform(0.1, 0.9, 8), rng.uniform(1, 3, 8)
    space = {f"x{i}": Float(0.0, 1.0) for i in range(100)}
    f = Family(space, lambda p: float(sum(w[i] * (p[names[i]] - c[i]) ** 2 for i in range(6))), names[:6])
    return f, rng, names, c, w


def categories(seed: int) -> Family:
    f, rng, names, _, _ = _hundred(seed)
    t = rng.uniform(0, 1, (6, 4))
    f.space = {name: Categorical(list("abcd")) for name in f.space}
    f.f = lambda p: float(sum(t[i]["abcd".index(p[names[i]])] for i in range(6)))
    return f


def integers(seed: int) -> Family:
    f, _, names, c, w = _hundred(seed)
    f.space = {name: Integer(0, 9) for name in f.space}
    f.f = lambda p: float(sum(w[i] * (p[names[i]] / 9 - c[i]) ** 2 for i in range(6)))
    return f


def batches(seed: int) -> Family:
    f = _hundred(seed)[0]
    f.batch = 10
    return f


def measured(seed: int) -> Family:
    """Two variables act on a measured constraint alone."""
    f, _, names, _, _ = _hundred(seed)
    value, f.active = f.f, names
    f.f = lambda p: (value(p), {"g": float(p[names[6]] + p[names[7]] - 0.9)})
    return f


def failing(seed: int) -> Family:
    f, _, names, _, _ = _hundred(seed)
    value = f.f
    f.f = lambda p: None if p[names[0]] > 0.8 else value(p)
    return f


def conditional(seed: int) -> Family:
    """One of three groups of 20 variables exists, beside 40 others."""
    _, rng, _, c, w = _hundred(seed)
    kinds, t = ["p", "q", "r"], rng.uniform(0, 0.5, 3)
    free = [f"x{i}" for i in range(40)]
    space: Params = {"kind": Categorical(kinds)} | {name: Float(0.0, 1.0) for name in free}
    space |= {f"{k}{i}": Float(0.0, 1.0, when={"kind": k}) for k in kinds for i in range(20)}
    a = list(rng.permutation(free)[:4])
    b = {k: [f"{k}{i}" for i in rng.permutation(20)[:2]] for k in kinds}

    def f(p: Params) -> float:
        own = sum(w[4 + i] * (p[b[p["kind"]][i]] - c[4 + i]) ** 2 for i in range(2))
        return float(t[kinds.index(p["kind"])] + sum(w[i] * (p[a[i]] - c[i]) ** 2 for i in range(4)) + own)

    return Family(space, f, ["kind", *a, *(name for k in kinds for name in b[k])])


FAMILIES = (
    additive, product, maximum, plateau, steps, gate, pairs, strongweak, rotated, alike, mixed, constrained, wide,
    categories, integers, batches, measured, failing, conditional,
)  # fmt: skip


def run(family: Family, seed: int, budget: int, **more: Any) -> Optimizer:
    opt = Optimizer(family.space, budget=budget, seed=seed, **more)
    while len(opt.trials) < budget:
        for trial in opt.ask(min(family.batch, budget - len(opt.trials))):
            result = family.f(trial.params)
            value, constraints = result if isinstance(result, tuple) else (result, None)
            opt.tell(trial, value, constraints=constraints)
    return opt


Runs = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]  # map, or that of several processes
BY_NAME = {make.__name__: make for make in FAMILIES}


@dataclass
class Named:
    """What a run has named."""

    recall: float
    wrong: int
    all_act: bool
    spent: int
    active: int
    best: float


def named(task: tuple[str, int], explain: float | None) -> Named:
    family, seed = BY_NAME[task[0]](task[1]), task[1]
    opt = run(family, seed, 200, explain=explain)
    rows, act = opt.variables(), set(family.active)
    recall, wrong = len(act & set(rows.active)) / len(act), len(set(rows.active) - act - set(family.weak))
    spent = sum(t.source == "explain" for t in opt.trials)
    best = float(opt.best.value) if opt.best.has_value and opt.best.value is not None else np.nan
    return Named(recall, wrong, rows.summary.startswith("all variables act"), spent, len(act), best)


def variables(seeds: range, names: list[str], explain: float | None, runs: Runs) -> None:
    tasks = [(name, seed) for name in names for seed in seeds]
    found = iter(runs(partial(named, explain=explain), tasks))
    print("| family | runs | active | named of them | inert ones named | all act: said | evaluations spent |")
    print("|---|---|---|---|---|---|---|")
    for name in names:
        rows = [next(found) for _ in seeds]
        recall = np.array([row.recall for row in rows])
        spent, error = np.mean([row.spent for row in rows]), recall.std() / np.sqrt(len(rows))
        line = f"| {name} | {len(rows)} | {rows[0].active} | {recall.mean():.3f} ± {error:.3f} |"
        said = sum(row.all_act for row in rows)
        print(f"{line} {sum(row.wrong for row in rows)} | {said} | {spent:.1f} |", flush=True)


def cost(seeds: range, names: list[str], runs: Runs) -> None:
    """A difference above 0: proofs cost something."""
    tasks = [(name, seed) for name in names for seed in seeds]
    ways = [list(runs(partial(named, explain=explain), tasks)) for explain in (None, 0.0)]
    print("| family | runs | best value with proofs | without | difference, in standard errors |")
    print("|---|---|---|---|---|")
    for i, name in enumerate(names):
        rows = slice(i * len(seeds), (i + 1) * len(seeds))
        one, other = (np.array([row.best for row in way[rows]]) for way in ways)
        gap = one - other
        error = gap.std(ddof=1) / np.sqrt(len(gap))
        ratio = gap.mean() / error if error else 0.0
        print(f"| {name} | {len(gap)} | {one.mean():.3g} | {other.mean():.3g} | {ratio:+.1f} |", flush=True)


def exact_functions() -> dict[str, tuple[int, Callable[[Any, int], Any]]]:
    """Dimension, and the value of a point at an evaluation."""
    c = np.random.default_rng(0).uniform(0.2, 0.8, 60)

    def bowl(x: Any) -> float:
        return float(((x - c[: len(x)]) ** 2).sum())

    def random_of(x: Any) -> float:
        return int.from_bytes(hashlib.blake2b(x.tobytes(), digest_size=8).digest(), "little") / 2**64

    smooth: dict[str, tuple[int, Callable[[Any], Any]]] = {
        "bowl of 10": (10, bowl),
        "bowl of 60": (60, bowl),
        "steep": (20, lambda x: 1e8 * bowl(x)),
        "flat": (20, lambda x: 1e-9 * bowl(x) + 5),
        "logarithm": (20, lambda x: np.log(1e-9 + bowl(x))),
        "exponential": (20, lambda x: np.exp(30 * bowl(x))),
        "wall": (20, lambda x: 1e6 * (x[0] > 0.5) + bowl(x)),
        "valley": (20, lambda x: (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()),
        "two of 100": (100, lambda x: (x[3] - 0.2) ** 2 + (x[17] - 0.9) ** 2),
        "largest": (30, lambda x: np.abs(x - c[:30]).max()),
        "constant": (10, lambda x: 1.0),
        "steps": (20, lambda x: np.floor(9 * np.abs(x - c[:20])).sum()),
        "random of the point": (20, random_of),
        "bowl and random": (20, lambda x: bowl(x) + 0.1 * random_of(x)),
        "ripple": (20, lambda x: bowl(x) + 0.1 * np.sin(1e6 * x).sum()),
        "fine ripple": (20, lambda x: np.sin(1e12 * x.sum())),
        "jumps": (20, lambda x: float((x.sum() * 1e7) % 1)),
        "two digits": (20, lambda x: round(bowl(x), 2)),
    }

    def always(f: Callable[[Any], Any]) -> Callable[[Any, int], Any]:
        return lambda x, i: float(f(x))

    def late(first: int) -> Callable[[Any, int], Any]:
        return lambda x, i: None if i < first else bowl(x)

    found = {name: (D, always(f)) for name, (D, f) in smooth.items()}
    found |= {f"first {k} fail": (10, late(k)) for k in (5, 8, 10, 12, 20)}
    found["a region fails"] = (30, lambda x, i: None if x[0] > 0.4 else bowl(x))
    return found


def judged_exact(task: tuple[str, int]) -> tuple[bool, bool]:
    """Whether exact values were called noisy, and whether the value stated is the least one."""
    name, seed = task
    D, f = exact_functions()[name]
    opt = Optimizer([(0.0, 1.0)] * D, budget=60, seed=seed)
    for i in range(60):
        (trial,) = opt.ask()
        opt.tell(trial, f(trial.x, i))
    least, chosen = min(t.value for t in opt.trials if t.has_value and t.value is not None), opt.recommend()
    return opt.noisy is True, (chosen.mean, chosen.sd) == (least, 0.0)


def noise_seen(task: tuple[float, str, int]) -> tuple[bool, int]:
    """Whether noise was seen, and after how many evaluations."""
    sd, name, seed = task
    D, f = exact_functions()[name]
    scale = sd * float(np.ptp([f(x, 0) for x in np.random.default_rng(5).random((200, D))]))
    rng, opt = np.random.default_rng([seed, 9]), Optimizer([(0.0, 1.0)] * D, budget=200, seed=seed)
    while not opt.noisy and len(opt.trials) < 60:
        (trial,) = opt.ask()
        opt.tell(trial, f(trial.x, 0) + scale * rng.standard_normal())
    return opt.noisy is True, len(opt.trials)


def exact(seeds: range, runs: Runs) -> None:
    found = list(runs(judged_exact, [(name, seed) for name in exact_functions() for seed in seeds]))
    called, least = (sum(column) for column in zip(*found, strict=True))
    print(f"exact values: {called} of {len(found)} runs called noisy; fun is the least value in {least}")
    names, sizes = ("bowl of 10", "bowl of 60", "two of 100", "largest", "valley"), (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    seen = list(runs(noise_seen, [(sd, name, seed) for sd in sizes for name in names for seed in seeds[:4]]))
    latest = max(evaluations for _, evaluations in seen)
    count = sum(noisy for noisy, _ in seen)
    print(f"noise of 0.0001 to 1 of the range: seen in {count} of {len(seen)} runs, after {latest} evaluations at most")


HARTMANN = np.array([[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]])  # fmt: skip  # noqa: E501
CENTRES = 1e-4 * np.array([[1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991], [2348, 1451, 3522, 2883, 3047, 6650], [4047, 8828, 8732, 5743, 1091, 381]])  # fmt: skip  # noqa: E501


def noisy_functions(seed: int) -> dict[str, tuple[int, Callable[[Any], float], float]]:
    """Dimension, function and standard deviation of its noise."""
    rng = np.random.default_rng(5000 + seed)
    c2 = rng.uniform(0.2, 0.8, 2)
    rng = np.random.default_rng(5000 + seed)
    a6, c6, w6 = rng.permutation(60)[:6], rng.uniform(0.1, 0.9, 6), rng.uniform(1, 3, 6)
    a50 = np.random.default_rng(5000 + seed).permutation(50)[:6]
    c20 = np.random.default_rng(5000 + seed).uniform(0.2, 0.8, 20)
    rng = np.random.default_rng(5000 + seed)
    a5, c5 = rng.permutation(60)[:5], rng.uniform(0.1, 0.9, 5)
    heights = np.array([1, 1.2, 3, 3.2])

    def six(x: Any) -> float:
        return float((w6 * (x[a6] - c6) ** 2).sum())

    def hartmann(x: Any) -> float:
        return float(-(heights * np.exp(-(HARTMANN * (x[a50] - CENTRES) ** 2).sum(1))).sum())

    return {
        "two20": (20, lambda x: float(100 * ((x[[3, 7]] - c2) ** 2).sum()), 0.5),
        "six60": (60, six, 0.1),
        "hartmann50": (50, hartmann, 0.3),
        "alike20": (20, lambda x: float(((x - c20) ** 2).sum()), 0.1),
        "max60": (60, lambda x: float(2 * np.abs(x[a5] - c5).max()), 0.1),
        "small": (60, six, 0.03),
        "loud60": (60, six, 0.4),
        "loudhart": (50, hartmann, 1.0),
    }


def recommended(task: tuple[str, int]) -> tuple[float, bool, float]:
    """Stated less true value, whether the interval covers, and its half width; in standard deviations of the noise."""
    name, seed = task
    D, f, sd = noisy_functions(seed)[name]
    place = list(noisy_functions(0)).index(name)
    rng, opt = np.random.default_rng([7, seed, place]), Optimizer([(0.0, 1.0)] * D, budget=120, seed=seed)
    for _ in range(120):
        (trial,) = opt.ask()
        opt.tell(trial, f(trial.x) + sd * rng.standard_normal())
    chosen = opt.recommend()
    (low, high), true = chosen.interval, f(chosen.x)
    return (chosen.mean - true) / sd, low <= true <= high, (high - low) / 2 / sd


def noise(seeds: range, runs: Runs) -> None:
    names = list(noisy_functions(0))
    found = list(runs(recommended, [(name, seed) for name in names for seed in seeds]))
    print("| function | runs | bias, in noise sd | 90 % interval covers | its half width, in noise sd |")
    print("|---|---|---|---|---|")
    for i, name in enumerate(names):
        print(_noise_line(name, found[i * len(seeds) : (i + 1) * len(seeds)]))
    print(_noise_line("all", found))


def _noise_line(name: str, rows: list[tuple[float, bool, float]]) -> str:
    bias, covers, half = (np.array(column) for column in zip(*rows, strict=True))
    error = bias.std() / np.sqrt(len(bias))
    return f"| {name} | {len(bias)} | {bias.mean():+.2f} ± {error:.2f} | {covers.mean():.2f} | {half.mean():.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("variables", "cost", "exact", "noise"))
    parser.add_argument("--seeds", help="FIRST-END, without the end")
    parser.add_argument("--families", default=",".join(BY_NAME), help="names, with commas")
    parser.add_argument("--explain", type=float, help="share of the budget")
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    default = {"exact": "0-10", "noise": "100-125"}.get(given.what, "100-120")
    first, end = map(int, (given.seeds or default).split("-"))
    seeds, names = range(first, end), given.families.split(",")
    with Pool(given.processes) as pool:
        if given.what == "variables":
            variables(seeds, names, given.explain, pool.imap)
        elif given.what == "cost":
            cost(seeds, names, pool.imap)
        else:
            (exact if given.what == "exact" else noise)(seeds, pool.imap)


if __name__ == "__main__":
    main()
