"""The default method: phases, decisions, and what it finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mctsvs import Categorical, Float, Integer, Optimizer
from mctsvs.bench import problems
from mctsvs.methods.auto import Auto, phases, portfolio
from mctsvs.methods.auto.constants import FEWEST
from mctsvs.methods.auto.evidence import TestKind as Kind
from mctsvs.methods.auto.phases import Audit, OptimiseFullSpace, OptimiseSubspace, Phase
from mctsvs.testing import BUDGET, engine_of
from mctsvs.utils.validation import Array


def engine(opt: Optimizer) -> Auto:
    return engine_of(opt, Auto)


def search(f: Callable[[Array], float], D: int, budget: int, seed: int, batch: int = 1, **options: Any) -> Optimizer:
    opt = Optimizer([(0.0, 1.0)] * D, direction="maximize", method="auto", seed=seed, **options)
    while len(opt.trials) < budget:
        for trial in opt.ask(min(batch, budget - len(opt.trials))):
            opt.tell(trial, f(trial.x))
    return opt


def sparse(x: Array) -> float:
    return -float(((x[[3, 50, 77]] - [0.2, 0.7, 0.4]) ** 2).sum())


@pytest.mark.parametrize("batch", [1, 7])
def test_finds_the_variables_and_the_optimum(batch: int) -> None:
    opt = search(sparse, 100, 100, 1, batch)
    assert engine(opt).subspace.tolist() == [3, 50, 77]
    assert opt.best.value == pytest.approx(0.0, abs=1e-3)
    assert set(opt.variables().active) <= {"x3", "x50", "x77"}  # without a budget nothing is kept to prove all


def test_many_active_variables_are_modelled_together() -> None:
    opt = search(lambda x: -float(((x - 0.3) ** 2).sum()), 60, 40, 3)
    assert isinstance(engine(opt).phase, OptimiseFullSpace)


def test_values_in_steps_are_not_tested() -> None:
    """There a variable that matters often changes nothing, and a bowl is the wrong shape."""
    opt = search(lambda x: np.floor(8.0 * sparse(x)), 100, 60, 1)
    assert engine(opt).evidence.tests == 0
    assert isinstance(engine(opt).phase, OptimiseFullSpace)


def test_a_small_budget_is_not_spent_on_tests() -> None:
    opt = Optimizer([(0.0, 1.0)] * 300, direction="maximize", method="auto", seed=4, budget=40)
    for _ in range(15):
        (trial,) = opt.ask()
        opt.tell(trial, sparse(trial.x))
    assert isinstance(engine(opt).phase, OptimiseFullSpace)
    assert engine(opt).evidence.tests == 0
    unknown = search(sparse, 300, 15, 4)
    assert not isinstance(engine(unknown).phase, OptimiseFullSpace)


@pytest.mark.parametrize(("budget", "phase"), [(None, OptimiseFullSpace), (2000, phases.Screening)])
def test_a_large_budget_makes_more_tests_worth_their_price(budget: int | None, phase: type[Phase]) -> None:
    active = np.random.default_rng(0).permutation(400)[:40]
    opt = Optimizer([(0.0, 1.0)] * 400, direction="maximize", method="auto", seed=5, budget=budget)
    for _ in range(45):
        (trial,) = opt.ask()
        opt.tell(trial, -float(((trial.x[active] - 0.3) ** 2).sum()))
    assert isinstance(engine(opt).phase, phase)


def test_a_later_plan_changes_what_is_still_to_be_decided() -> None:
    opt = Optimizer([(0.0, 1.0)] * 300, direction="maximize", method="auto", seed=4, budget=40)
    for step in range(60):
        if step == 5:
            assert engine(opt).count.limit < FEWEST
            opt.plan(2000)
            opt = Optimizer.restore(opt.state())
        (trial,) = opt.ask()
        opt.tell(trial, sparse(trial.x))
    assert engine(opt).evidence.tests > 15
    assert engine(opt).left == 2000 - 60
    opt.plan(61)
    assert engine(opt).left == 1
    assert engine(opt).gives_up is False


def test_a_known_budget_can_be_exceeded_and_saved() -> None:
    opt = Optimizer([(0.0, 1.0)] * 100, direction="maximize", method="auto", seed=6, budget=70)
    for _ in range(75):
        (trial,) = opt.ask()
        opt.tell(trial, sparse(trial.x))
    again = Optimizer.restore(opt.state())
    assert engine(again).budget == 70
    assert engine(again).proposed == 75 - sum(trial.source == "explain" for trial in opt.trials)
    assert opt.best.value == pytest.approx(0.0, abs=0.01)


@pytest.mark.parametrize("alike", [True, False])
def test_a_model_of_the_best_points_takes_turns_and_is_restored(alike: bool) -> None:
    def bowl(x: Array) -> float:
        return -float(((x - 0.3) ** 2).sum())

    opt = search(bowl, 10, 100, 7, alike=alike)
    assert isinstance(engine(opt).phase, OptimiseFullSpace)
    models = engine(opt).surrogates
    model = models.alike.of_best.model if alike else models.apart.of_best.model
    assert model.posterior is not None
    assert 40 <= len(model.posterior.y) <= 80 < len(opt.trials)
    again = Optimizer.restore(opt.state())
    for _ in range(4):
        points = []
        for one in (opt, again):
            (trial,) = one.ask()
            one.tell(trial, bowl(trial.x))
            points.append(trial.x)
        assert np.array_equal(points[0], points[1])


def test_early_steps_beside_the_tests_move_all_variables_that_are_not_rejected() -> None:
    opt = Optimizer([(0.0, 1.0)] * 300, direction="maximize", method="auto", seed=8)
    moved = []
    for _ in range(60):
        (trial,) = opt.ask()
        inside = engine(opt)
        if isinstance(inside.phase, phases.Screening) and inside.open[trial.proposal_id].kind is Kind.ALL:
            assert np.array_equal(trial.variables, np.flatnonzero(~inside.evidence.rejected))
            moved.append(len(trial.variables))
        opt.tell(trial, sparse(trial.x))
    assert len(moved) >= 3
    assert moved == sorted(moved, reverse=True)
    assert 0 < len(inside.subspace) < moved[-1]


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_an_audit_catches_variables_that_act_only_together(seed: int) -> None:
    """Neither of two variables changes anything while the other is small: single tests must miss them.

    An audit catches them if one of its three changes makes both large, which it does in about half of all runs.
    """

    def pair(x: Array) -> float:
        return -10.0 * float(max(x[5] - 0.5, 0.0) * max(x[9] - 0.5, 0.0)) - float((x[20] - 0.4) ** 2)

    missed = engine(search(pair, 40, 70, seed, audit=False))
    assert isinstance(missed.phase, OptimiseSubspace)
    assert missed.subspace.tolist() == [20]
    again = engine(search(pair, 40, 110, seed))  # the audit's own two points are split until it is clear
    assert again.evidence.reopened > 0
    assert again.evidence.found.tolist() == [5, 9, 20]


def test_a_narrow_peak_beside_a_broad_one_is_found() -> None:
    def peaks(x: Array) -> float:
        broad = np.exp(-8.0 * ((x[:2] - 0.25) ** 2).sum())
        narrow = 1.5 * np.exp(-40.0 * ((x[:2] - 0.8) ** 2).sum())
        return float(broad + narrow)

    runs = [search(peaks, 30, 160, seed) for seed in range(3)]
    assert np.mean([opt.best.value or 0.0 for opt in runs]) > 1.3


def test_constant_objective() -> None:
    opt = search(lambda x: 1.0, 30, BUDGET, 5)
    assert opt.best.value == 1.0


def test_mixed_variables_are_found() -> None:
    space = {
        **{f"x{i}": Float(0.0, 1.0) for i in range(30)},
        "n": Integer(1, 9),
        "c": Categorical(["a", "b", "c"]),
    }
    opt = Optimizer(space, direction="minimize", method="auto", seed=4)
    for _ in range(110):
        (trial,) = opt.ask()
        p = trial.params
        opt.tell(trial, (p["x4"] - 0.3) ** 2 + 0.1 * (p["n"] - 6) ** 2 + {"a": 1.0, "b": 0.0, "c": 2.0}[p["c"]])
    assert opt.best.params["c"] == "b"
    assert opt.best.params["n"] == 6
    assert opt.best.value == pytest.approx(0.0, abs=0.01)


def test_failures_do_not_stop_it() -> None:
    opt = Optimizer([(0.0, 1.0)] * 50, direction="maximize", method="auto", seed=6)
    for i in range(80):
        (trial,) = opt.ask()
        opt.tell(trial, None if i % 4 == 0 else -float((trial.x[7] - 0.5) ** 2))
    assert opt.best.value == pytest.approx(0.0, abs=0.05)


def test_points_from_elsewhere_answer_questions() -> None:
    """A run that begins with the evaluations of another one repeats no probe, test or audit of it.

    Nearly always: where the other's last tests were not beside its best point, they must be asked again.
    """
    complete = 0
    for seed in range(6):
        before = search(sparse, 100, 80, seed)
        assert isinstance(engine(before).phase, OptimiseSubspace)
        after = Optimizer([(0.0, 1.0)] * 100, direction="maximize", method="auto", seed=seed + 50)
        for trial in before.trials:
            after.add(trial.x, trial.value)
        (trial,) = after.ask()
        found = engine(after).subspace.tolist() == [3, 50, 77]
        complete += found and set(trial.variables) <= {3, 50, 77} and isinstance(engine(after).phase, OptimiseSubspace)
    assert complete >= 5


def test_noise_elsewhere_is_noticed() -> None:
    opt = Optimizer([(0.0, 1.0)] * 20, direction="maximize", method="auto", seed=2)
    x = np.full(20, 0.4)
    opt.add(x, 1.0)
    opt.add(x, 1.1)
    assert isinstance(engine(opt).phase, OptimiseFullSpace)


def test_many_points_from_elsewhere_are_read_quickly() -> None:
    """Random categories differ in half of the variables from any incumbent: no tests, though values are often equal."""
    rng = np.random.default_rng(0)
    opt = Optimizer({f"c{i}": Categorical(["a", "b"]) for i in range(100)}, method="auto", seed=0)
    for _ in range(500):
        point = {f"c{i}": "ab"[int(bit)] for i, bit in enumerate(rng.random(100) < 0.5)}
        opt.add(point, sum(point[f"c{i}"] == "a" for i in range(8)))
    assert not engine(opt).evidence.rejected[:8].any()
    assert engine(opt).evidence.tests < 50


@pytest.mark.parametrize("method", ["auto", "bo-dsp", "bo"])
def test_categories_are_not_repeated(method: str) -> None:
    """Rounded to the nearest category, every step of a model would be a point it knows."""
    space = {f"c{i}": Categorical(list("abc")) for i in range(40)}
    opt = Optimizer(space, direction="maximize", method=method, seed=1)
    points = []
    for _ in range(60):
        (trial,) = opt.ask()
        if trial.purpose != Kind.REPEAT.value:
            points.append(trial.x.tobytes())
        opt.tell(trial, sum(trial.params[f"c{i}"] == "b" for i in (3, 14, 15, 26)) + 0.1 * (trial.params["c9"] == "c"))
    assert len(set(points)) == len(points)


def test_tests_of_others_do_not_make_room_for_steps() -> None:
    """A run that begins with the tests of another one goes on testing: the share of steps is of its own points."""
    first = Optimizer([(0.0, 1.0)] * 300, direction="maximize", method="auto", seed=9)
    second = Optimizer([(0.0, 1.0)] * 300, direction="maximize", method="auto", seed=10)
    for _ in range(32):
        (trial,) = first.ask()
        first.tell(trial, sparse(trial.x))
    assert isinstance(engine(first).phase, phases.Screening)
    for trial in first.trials:
        assert trial.value is not None
        second.add(trial.x, trial.value)
    assert engine(second).evidence.tests >= 10
    kinds = []
    for _ in range(8):
        (trial,) = second.ask()
        kinds.append(engine(second).open[trial.proposal_id].kind)
        second.tell(trial, sparse(trial.x))
    assert sum(kind in (Kind.ALL, Kind.STEP) for kind in kinds) <= 2


def test_a_late_probe_leads_nowhere_back() -> None:
    opt = Optimizer([(0.0, 1.0)] * 100, direction="maximize", method="auto", seed=11)
    for _ in range(26):
        (trial,) = opt.ask()
        opt.tell(trial, sparse(trial.x))
    (probe,) = opt.ask()
    assert engine(opt).open[probe.proposal_id].kind is Kind.PROBE
    opt.add(opt.best.x, sparse(opt.best.x) + 0.5)  # another worker saw noise
    assert isinstance(engine(opt).phase, OptimiseFullSpace)
    opt.tell(probe, sparse(probe.x))
    assert isinstance(engine(opt).phase, OptimiseFullSpace)


@pytest.mark.parametrize("whole", [False, True])
def test_noise_is_seen(whole: bool) -> None:
    """By one point evaluated again, also where all variables are whole numbers."""
    rng = np.random.default_rng(0)
    opt = Optimizer([Integer(0, 99) if whole else (0.0, 99.0)] * 100, direction="maximize", method="auto", seed=1)
    for _ in range(40):
        (trial,) = opt.ask()
        opt.tell(trial, sparse(trial.x / 99.0) + 0.1 * rng.standard_normal())
    assert isinstance(engine(opt).phase, OptimiseFullSpace)
    assert engine(opt).noisy is True
    assert engine(opt).evidence.tests == 0
    assert len({trial.unit.tobytes() for trial in opt.trials}) == 39


def test_failed_audits_do_not_keep_it_from_new_epochs() -> None:
    opt = Optimizer([(0.0, 1.0)] * 100, direction="maximize", method="auto", seed=1)
    failed = 0
    for _ in range(90):
        (trial,) = opt.ask()
        audit = isinstance(engine(opt).phase, Audit) and len(trial.variables) > 50
        failed += audit
        opt.tell(trial, None if audit else sparse(trial.x))
    assert failed == 3
    assert isinstance(engine(opt).phase, OptimiseSubspace)


@pytest.mark.parametrize("where", ["region", "anywhere"])
def test_failures_do_not_wall_off_the_optimum(where: str) -> None:
    """Failures that have nothing to do with the found variables must not spoil their model."""
    rng = np.random.default_rng(1)
    opt = Optimizer([(0.0, 1.0)] * 60, direction="minimize", method="auto", seed=3)
    for _ in range(150):
        (trial,) = opt.ask()
        fails = not 0.35 < trial.x[11] < 0.55 if where == "region" else rng.random() < 0.1
        opt.tell(trial, None if fails else float(((trial.x[[5, 20, 33]] - [0.3, 0.6, 0.8]) ** 2).sum()))
    assert opt.best.value == pytest.approx(0.0, abs=1e-3)


@pytest.mark.slow
def test_hartmann_among_five_hundred() -> None:
    """Within 120 evaluations at the optimum (3.32237) or its second best peak (3.203); the seeds are fixed."""
    for seed in range(2):
        problem = problems.make("Hartmann6_500", shuffle=True, seed=seed)
        opt = search(problem, 500, 120, seed)
        assert set(engine(opt).subspace.tolist()) == set(problem.active if problem.active is not None else ())
        assert (opt.best.value or 0.0) > 3.19


@pytest.mark.parametrize(("noise", "noisy"), [(0.0, False), (0.1, True)])
def test_one_point_evaluated_again_shows_noise(noise: float, noisy: bool) -> None:
    rng = np.random.default_rng(0)
    opt = search(lambda x: -float(((x - 0.3) ** 2).sum()) + noise * rng.standard_normal(), 60, 40, 3)
    assert isinstance(engine(opt).phase, OptimiseFullSpace)
    assert engine(opt).noisy is noisy
    gaps = [np.abs(b.unit - a.unit).max() for a, b in zip(opt.trials, opt.trials[1:], strict=False)]
    assert len({trial.unit.tobytes() for trial in opt.trials}) == 39
    assert sum(gap == 0 for gap in gaps) <= 1


def test_says_what_it_is_doing() -> None:
    opt = Optimizer([(0.0, 1.0)] * 100, direction="maximize", method="auto", seed=1, budget=90)
    said = []
    for _ in range(90):
        (trial,) = opt.ask()
        opt.tell(trial, sparse(trial.x))
        said.append(opt.describe())
    words = list(dict.fromkeys(text.partition(":")[0] for text in said))
    assert words[0] == "first points"
    assert words[-1] == "optimising the found variables"
    assert "testing groups" in words
    assert said[-1] == "optimising the found variables: 3 of 100"


def test_two_models_take_turns_where_many_but_not_all_variables_matter() -> None:
    opt = search(lambda x: -float(((x[:60] - 0.3) ** 2).sum()), 120, 70, 3)
    inner = engine(opt)
    assert isinstance(inner.phase, OptimiseFullSpace)
    assert inner.evidence.rejected.any()
    assert inner.surrogates.apart.of_all.model.fitted > 0  # a lengthscale for each
    assert inner.surrogates.alike.turn > 15  # more than its first steps


def test_a_small_budget_for_many_variables_goes_to_both_models() -> None:
    opt = Optimizer([(0.0, 1.0)] * 300, direction="maximize", seed=4, budget=40)
    for _ in range(20):
        (trial,) = opt.ask()
        opt.tell(trial, sparse(trial.x))
    inner = engine(opt)
    assert inner.tested == 0
    assert inner.surrogates.apart.of_all.model.fitted > 0
    assert inner.surrogates.alike.turn > 0


@pytest.mark.parametrize(("active", "alike"), [(20, True), (8, False)])
def test_many_found_variables_are_also_treated_alike(active: int, alike: bool) -> None:
    moved, place = np.arange(active) * 5, 0.2 + 0.6 * np.random.default_rng(0).random(active)
    opt = Optimizer([(0.0, 1.0)] * 200, method="auto", seed=1, budget=500)
    while not isinstance(engine(opt).phase, OptimiseSubspace):
        (trial,) = opt.ask()
        opt.tell(trial, float(((trial.x[moved] - place) ** 2).sum()))
    assert engine(opt).subspace.tolist() == moved.tolist()
    before = len(opt.trials)
    again = Optimizer.restore(opt.state())
    for one in (opt, again):
        while len(one.trials) < before + 20:
            (trial,) = one.ask()
            assert np.isin(trial.variables, moved).all()
            one.tell(trial, float(((trial.x[moved] - place) ** 2).sum()))
    steps = opt.trials[before:]
    assert any(trial.purpose == Kind.ALIKE.value for trial in steps) == alike
    assert [trial.value for trial in steps] == [trial.value for trial in again.trials[before:]]
    assert opt.best.value is not None
    assert opt.best.value < 0.2


def with_found(count: int, n: int) -> Auto:
    """A search that has found so many variables, with a history of n values."""
    opt = Optimizer([(0.0, 1.0)] * 60, direction="maximize", method="auto", seed=0)
    inner, rng = engine(opt), np.random.default_rng(0)
    for value in range(n):
        inner.history.add(rng.random(60), float(value))
    inner.subspace = np.arange(count)
    inner.evidence.rejected[count:] = True
    return inner


def test_which_models_take_steps_in_the_found_variables() -> None:
    assert portfolio.found_arms(with_found(15, 41), 40) == [Kind.STEP]
    assert portfolio.found_arms(with_found(20, 41), 40) == [Kind.STEP, Kind.ALIKE]
    assert portfolio.found_arms(with_found(15, 100), 40) == [Kind.STEP, Kind.CLOSE], "after some steps of their model"
