"""Constraints that are known: every proposal of every method satisfies them, and what cannot be is said at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, NonlinearConstraint

from mctsvs import Categorical, Fixed, Float, Integer, Optimizer, Ordinal, Study, minimize
from mctsvs.methods.registry import METHODS
from mctsvs.space import Region, Space
from mctsvs.space.deduplicate import SpaceExhausted
from mctsvs.space.linear_constraints import Ruler
from mctsvs.space.region_slice import RegionSlice
from mctsvs.utils.validation import Array, InputError, StudyError

SLOW = {"saasbo", "mcts-vs-saasbo", "optuna-gp", "vae-bo", "alebo"}
BOX = [(0.0, 1.0)] * 12
SUM = "sum(x0:x7) <= 1"
MIXED = {
    "a": Integer(0, 20),
    "b": Integer(0, 20),
    "rate": Float(1e-4, 1.0, log=True),
    "w": (0.0, 3.0),
    "kind": Categorical(["x", "y", "z"]),
}
MIXED_CONSTRAINTS = ["3*a + 2*b + 0.5*w <= 21.3", "a - b >= -1", "rate + w >= 0.5", lambda p: p["kind"] != "y"]


def rows(text: str, n: int = 4) -> list[tuple[list[float], float]]:
    return [(row.coefficients.tolist(), row.limit) for row in Region(Space.of([(0, 9)] * n), text).rows]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x0 + 2*x1 <= 10", [([1, 2, 0, 0], 10)]),
        ("x0 + 2*x1 >= 1", [([-1, -2, 0, 0], -1)]),
        ("3*(x0 - x1)/2 - -x2 <= x3 + 4", [([1.5, -1.5, 1, -1], 4)]),
        ("1 <= sum(x1:x3) <= 5.5e0", [([0, -1, -1, -1], -1), ([0, 1, 1, 1], 5.5)]),
        ("'x0' * 2 + x0 ≤ .5", [([3, 0, 0, 0], 0.5)]),
        ("x[0] + sum(x[2]:x3) <= 0.5", [([1, 0, 1, 1], 0.5)]),
        (" + ".join(["x1"] * 5000) + " <= 1", [([0, 5000, 0, 0], 1)]),
    ],
)
def test_a_text_is_read(text: str, expected: Any) -> None:
    assert rows(text) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x0 + x1 == 3", "an equality leaves no room"),
        ("x0 < 3", "write <="),
        ("x0*x1 <= 3", "not linear: give a function"),
        ("2/x1 <= 3", "not linear"),
        ("x0**2 <= 3", "powers are not linear"),
        ("2 x0 <= 3", "'x0' is not expected"),
        ("X0 <= 3", "did you mean 'x0'"),
        ("x[7] <= 3", "there is no variable 'x7'"),
        ("sum(x3:x1) <= 1", "comes after its last"),
        ("(x0 + 2 <= 3", r"'\)' is missing"),
        ("x0/0 <= 1", "divides by 0"),
        ("__import__('os') <= 1", "only sum"),
        ("x0 + 1", "needs one <= or >="),
        ("x0 - x0 <= 1", "no variable in it"),
        ("x0 + $ <= 1", r"'\$' has no meaning"),
        ("", "missing before 'the end'"),
    ],
)
def test_what_cannot_be_read_says_why(text: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        rows(text)


@pytest.mark.parametrize(
    ("constraints", "why"),
    [
        ("x1 >= 2", "no point of the space satisfies the constraint 'x1 >= 2'"),
        (["x0 + x1 <= 0.5", "x0 >= 0.4", "x1 >= 0.4"], "together"),
        (LinearConstraint(np.eye(12)[:2], 0.5, 0.5), "leaves no room"),
        (LinearConstraint(np.eye(3), 0.0, 0.5), "a column for each variable"),
        (NonlinearConstraint(lambda x: x[0], 1.0, 1.0), "the lower must be smaller"),
        (LinearConstraint(np.eye(12)[:2], 0.6, 0.5), "the lower must not be larger"),
        ("0.5 <= x0 <= 0.5", "the constraint '0.5 <= x0 <= 0.5' cannot be used: an equality leaves no room"),
        (["x0 + x1 <= 1", "x0 <= 0.9", "2*x0 + 2*x1 >= 2"], "'2.x0 . 2.x1 >= 2' together cannot be used: an equality"),
        (lambda x: x > 0.2, r"constraint 1 \(<lambda>\) returned array.*: it must return True or False"),
        (NonlinearConstraint(lambda x: x[:2], [0.0] * 3, [1.0] * 3), "has 3 limits and returned 2 numbers"),
        (NonlinearConstraint(lambda x: x[:2], [0.0] * 3, [1.0] * 2), "3 lower limits and 2 upper ones"),
        (NonlinearConstraint(lambda x: "a", 0.0, 1.0), "returned 'a': it must return numbers"),  # type: ignore[arg-type, return-value]
        (3, "constraint 1 is 3"),
        (["x0 + x1 <= 0.5", "x2 + x3 >= 2.5"], "satisfies the constraint 'x2 . x3 >= 2.5': change it"),
    ],
)
def test_what_no_point_can_satisfy_is_said_at_once(constraints: Any, why: str) -> None:
    with pytest.raises(InputError, match=why):
        Optimizer(BOX, constraints=constraints).ask()


@pytest.mark.parametrize(
    "answer", [-0.3, 0.7, (False, "why"), [False], None, float("nan"), "no", np.array([True]), np.ma.masked, 1]
)
def test_a_function_says_true_or_false_before_anything_is_evaluated(answer: Any) -> None:
    """As scipy writes constraints, a number of at least 0 holds: here it is refused, not taken for true."""
    evaluated: list[Array] = []
    with pytest.raises(InputError, match=r"must return True or False, as in lambda x: 0.2 - x\[0\] >= 0$"):
        minimize(evaluated.append, BOX, budget=5, constraints=lambda x: answer)
    assert evaluated == []
    with pytest.raises(InputError, match=r"as in lambda x: 0.2 - x\['a'\] >= 0$"):
        Optimizer({"a": (0, 1)}, constraints=lambda x: answer).ask()


@pytest.mark.parametrize("kind", [bool, np.bool_, np.array])
def test_bools_of_numpy_are_bools(kind: Any) -> None:
    opt = Optimizer(BOX, seed=0, constraints=lambda x: kind(bool(x[0] <= 0.2)))
    assert max(trial.x[0] for trial in opt.ask(20)) <= 0.2


@pytest.mark.parametrize("none", [None, (), []])
def test_no_constraints_may_be_said_in_any_way(none: Any, tmp_path: Path) -> None:
    opt = Optimizer(BOX, constraints=none, seed=0)
    assert np.array_equal(opt.ask()[0].x, Optimizer(BOX, seed=0).ask()[0].x)
    for _ in range(2):
        with Study(tmp_path / "s.db", BOX, constraints=none) as study:
            study.ask()


def test_a_thin_region_is_no_equality() -> None:
    (trial,) = Optimizer(BOX, constraints=["x0 + x1 <= 1", "x0 + x1 >= 0.999", "x0 >= 0.3", "x1 >= 0.3"]).ask()
    assert 0.999 <= trial.x[0] + trial.x[1] <= 1.0


def test_a_category_is_no_number() -> None:
    with pytest.raises(InputError, match="category 'kind'"):
        Optimizer(MIXED, constraints="a + kind <= 3")


@pytest.mark.parametrize("method", [name for name in METHODS if name not in SLOW])
def test_every_proposal_of_every_method_is_inside(method: str) -> None:
    opt = Optimizer(BOX, method=method, seed=0, budget=40, constraints=[SUM, lambda x: x[8] + x[9] ** 2 <= 1.2])
    for _ in range(13):
        for trial in opt.ask(3):
            assert trial.x[:8].sum() <= 1.0
            assert trial.x[8] + trial.x[9] ** 2 <= 1.2
            opt.tell(trial, -float(trial.x @ np.arange(12)))
    assert len({trial.unit.tobytes() for trial in opt.trials if trial.purpose != "looking for noise"}) >= 38


@pytest.mark.parametrize("method", ["auto", "mcts-vs-bo", "turbo", "bo-iso", "random", "cma-es"])
def test_every_proposal_in_a_mixed_space_is_inside(method: str) -> None:
    opt = Optimizer(MIXED, method=method, seed=3, constraints=MIXED_CONSTRAINTS)
    for _ in range(30):
        (trial,) = opt.ask()
        p = trial.params
        assert 3 * p["a"] + 2 * p["b"] + 0.5 * p["w"] <= 21.3
        assert p["a"] - p["b"] >= -1
        assert p["rate"] + p["w"] >= 0.5
        assert p["kind"] != "y"
        opt.tell(trial, p["a"] - p["b"] + p["w"])


@pytest.mark.parametrize("method", ["auto", "bo", "bo-iso", "turbo", "saas"])
def test_the_best_corner_is_found(method: str) -> None:
    result = minimize(lambda x: -x[0] - 2 * x[1] + x[5], BOX, budget=60, seed=0, constraints=SUM, method=method)
    assert result.fun < -1.7  # -2 at x1 = 1; the best of 60 random points inside reaches about -1


def test_the_first_points_are_spread_over_a_simplex() -> None:
    opt = Optimizer([(0.0, 1.0)] * 60, seed=0, constraints="sum(x0:x39) <= 1")
    X = np.array([trial.x[:40] for trial in opt.ask(12)])
    assert (X.sum(axis=1) <= 1).all()
    share = X / X.sum(axis=1, keepdims=True)
    assert (X.std(axis=0) > 0).all()
    assert 0.05 < np.median(share.max(axis=1)) < 0.5  # neither all alike (1/40) nor one alone
    assert (X < 1e-9).mean() < 0.1


def test_repair_changes_the_moved_variables_alone_where_that_is_enough() -> None:
    region = Region(Space.of(BOX), SUM)
    base = np.full(12, 0.1)
    u = base.copy()
    u[[2, 5]] = 0.6, 0.4
    repaired = region.repair(u, towards=base, moved=np.array([2, 5]))
    changed = np.flatnonzero(repaired != base)
    assert changed.tolist() == [2, 5]
    assert repaired[:8].sum() == pytest.approx(1.0, abs=1e-6)
    assert repaired[2] - repaired[5] == pytest.approx(0.2)  # the nearest point


def test_repair_is_the_nearest_point_of_a_half_space() -> None:
    region, rng = Region(Space.of([(0.0, 1.0)] * 3), "x0 + x1 + x2 <= 1"), np.random.default_rng(0)
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 41)] * 3), -1).reshape(-1, 3)
    grid = grid[grid.sum(axis=1) <= 1]
    for u in rng.random((20, 3)):
        best = np.sqrt(((grid - u) ** 2).sum(axis=1).min())
        assert np.linalg.norm(region.repair(u) - u) <= best + 1e-6


def test_whole_numbers_are_repaired_to_the_nearest_that_are_allowed() -> None:
    region = Region(Space.of({"a": Integer(5, 20), "b": Integer(-9, 20)}), "2*a + b <= 27")
    for a, b in ((10, 10), (12, 4), (20, -9), (5, 18)):
        point = region.space.decode(region.repair(region.space.encode(np.array([a, b], float))))
        assert 25 <= 2 * point[0] + point[1] <= 27
        nearest = min(abs(i - a) / 15 + abs(j - b) / 29 for i in range(5, 21) for j in range(-9, 21) if 2 * i + j <= 27)
        assert abs(point[0] - a) / 15 + abs(point[1] - b) / 29 <= nearest + 0.15


def test_a_point_of_the_users_that_violates_names_the_constraint() -> None:
    opt = Optimizer(BOX, constraints=[SUM, lambda x: x[9] < 0.5])
    with pytest.raises(InputError, match=r"'sum\(x0:x7\) <= 1' does not hold: 8 is not <= 1"):
        opt.enqueue([np.ones(12)])
    with pytest.raises(InputError, match="constraint 2"):
        opt.add(np.r_[np.zeros(9), 1.0, 0.0, 0.0], 1.0)
    opt.enqueue([np.zeros(12)])
    assert opt.ask()[0].x.tolist() == [0.0] * 12


def test_scipys_constraints_hold() -> None:
    linear = LinearConstraint(np.eye(12)[:2] - np.eye(12)[1:3], [-0.1, -np.inf], [0.1, 0.0])
    ball = NonlinearConstraint(lambda x: [(x**2).sum()], 0.1, 0.7)
    opt = Optimizer(BOX, seed=1, constraints=[linear, ball])
    for _ in range(25):
        (trial,) = opt.ask()
        assert abs(trial.x[0] - trial.x[1]) <= 0.1
        assert trial.x[1] <= trial.x[2]
        assert 0.1 <= (trial.x**2).sum() <= 0.7
        opt.tell(trial, float(trial.x[0]))


def test_a_small_region_is_found_and_a_hidden_one_needs_a_first_point() -> None:
    small = NonlinearConstraint(lambda x: [((x - 0.3) ** 2).sum()], -np.inf, 0.01)
    assert ((Optimizer(BOX, constraints=small).ask()[0].x - 0.3) ** 2).sum() <= 0.01

    def hidden(x: Array) -> bool:
        return bool(np.abs(x - 0.3).max() < 0.01)

    with pytest.raises(InputError, match=r"no point that satisfies constraint 1 \(hidden\)"):
        Optimizer(BOX, constraints=hidden).ask()
    opt = Optimizer(BOX, constraints=hidden)
    opt.enqueue([np.full(12, 0.3)])
    assert all(hidden(trial.x) for trial in opt.ask(8))


def test_a_lattice_is_searched_to_the_end_of_what_is_allowed() -> None:
    opt = Optimizer({"a": Integer(0, 5), "b": Integer(0, 5)}, constraints="a + b <= 4", seed=0)
    seen = set()
    for _ in range(15):
        (trial,) = opt.ask()
        seen.add(tuple(trial.params.values()))
        opt.tell(trial, -sum(trial.params.values()))
    assert seen == {(a, b) for a in range(6) for b in range(6) if a + b <= 4}
    with pytest.raises(SpaceExhausted):
        opt.ask()


def test_a_state_goes_on_and_functions_are_given_again() -> None:
    def allowed(x: Array) -> bool:
        return bool(x[9] < 0.5)

    opt = Optimizer(BOX, seed=0, constraints=[SUM, allowed])
    for _ in range(12):
        (trial,) = opt.ask()
        opt.tell(trial, float(trial.x.sum()))
    state = opt.state()
    with pytest.raises(InputError, match="function 'allowed'"):
        Optimizer.restore(state)
    with pytest.raises(InputError, match="are not those that were stored"):
        Optimizer.restore(state, constraints=[allowed])
    again = Optimizer.restore(state, constraints=[SUM, allowed])
    assert np.array_equal(opt.ask()[0].unit, again.ask()[0].unit)


def test_a_study_keeps_its_constraints(tmp_path: Path) -> None:
    linear = LinearConstraint(np.ones((1, 12)), -np.inf, 4.0)

    def f(x: Array) -> float:
        return float(((x - 0.4) ** 2).sum())

    with Study(tmp_path / "a.db", BOX, constraints=[SUM, linear], seed=0) as study:
        study.optimize(f, 10)
    with Study(tmp_path / "b.db", BOX, constraints=[SUM, linear], seed=0) as study:
        study.optimize(f, 20)
        whole = [trial.unit for trial in study.trials]
    with pytest.raises(StudyError, match="constraints are"):
        Study(tmp_path / "a.db", constraints=[SUM])
    with Study(tmp_path / "a.db") as study:
        study.optimize(f, 20)
        assert np.array_equal(whole, [trial.unit for trial in study.trials])
        (tmp_path / "p.csv").write_text("value," + ",".join(f"x{i}" for i in range(12)) + "\n1" + ",1" * 12 + "\n")
        with pytest.raises(InputError, match="row 1 of the file"):
            study.import_points(tmp_path / "p.csv")
    Study(tmp_path / "c.db", BOX).close()
    with pytest.raises(StudyError, match="it has no constraints"):
        Study(tmp_path / "c.db", constraints=SUM)


def test_a_study_with_functions_is_read_without_them_and_run_with_them(tmp_path: Path) -> None:
    def allowed(x: Array) -> bool:
        return bool(x[9] < 0.5)

    with Study(tmp_path / "a.db", BOX, constraints=allowed, seed=0) as study:
        study.optimize(lambda x: float(x.sum()), 5)
    with Study(tmp_path / "a.db", readonly=True) as study:
        assert study.evaluated == 5
    with pytest.raises(InputError, match="give all of them again"):
        Study(tmp_path / "a.db")
    with Study(tmp_path / "a.db", constraints=[allowed]) as study:
        study.optimize(lambda x: float(x.sum()), 8)
        assert all(allowed(trial.x) for trial in study.trials)


def test_a_cut_leaves_the_room_that_the_other_variables_leave() -> None:
    region, base = Region(Space.of(BOX), SUM), np.full(12, 0.1)
    held = RegionSlice.of(region, base, np.array([2, 5, 9]))
    assert held.limited.tolist() == [True, True, False]
    assert held.excess(np.array([[0.2, 0.2, 1.0], [0.5, 0.5, 1.0]]))[:, 0] == pytest.approx([0.0, 0.6 / np.sqrt(8)])
    inside = held.inside(np.array([[0.5, 0.7, 0.9]]))[0]
    assert inside == pytest.approx([0.1, 0.3, 0.9], abs=1e-6)
    free = RegionSlice.of(region, base, np.array([2, 5, 9]), others_give_way=True)
    assert not free.excess(np.array([[0.5, 0.5, 1.0]])).any()


def test_the_pull_of_a_cut_is_its_gradient() -> None:
    region = Region(Space.of(MIXED), MIXED_CONSTRAINTS[:3])
    cut = RegionSlice.of(region, region.anchor, np.array([2, 3]))  # rate and w
    z, h = np.array([[0.3, 0.05]]), 1e-6
    excess = cut.excess(z)
    assert excess.any()
    pull = 2.0 * cut.pull(z, excess)[0]
    for i in range(2):
        step = np.eye(2)[i] * h
        slope = ((cut.excess(z + step) ** 2).sum() - (cut.excess(z - step) ** 2).sum()) / (2 * h)
        assert pull[i] == pytest.approx(slope, rel=1e-4)


def test_what_a_half_space_measures_is_the_value_of_every_kind_of_variable() -> None:
    """From coordinates to shares of the range and back: few and many whole numbers, a log scale, a falling list."""
    kinds = {
        "few": Integer(2, 9),
        "many": Integer(-5, 5000),
        "log": Float(1e-4, 10.0, log=True),
        "falling": Ordinal([30, 20, 5]),
        "plain": Float(-1.0, 3.0),
    }
    space = Space.of(kinds)
    ruler = Ruler(space, np.arange(len(kinds)))
    for params in space_points(space):
        u = space.encode_params(params)
        shares = (space.vector(params) - space.bounds[:, 0]) / np.diff(space.bounds, axis=1)[:, 0]
        assert ruler.read(u[None])[0] == pytest.approx(shares, abs=1e-9)
        assert ruler.write(shares[None])[0] == pytest.approx(u, abs=1e-9)


def space_points(space: Space) -> list[dict[str, Any]]:
    U = np.random.default_rng(0).random((40, space.n_coordinates))
    return [space.params(space.snap(u)) for u in U]


def test_room_is_the_distance_from_the_half_spaces_that_are_moved_in() -> None:
    region = Region(Space.of([(0.0, 1.0)] * 4), ["x0 + x1 <= 1", "x2 <= 0.75"])
    U = np.array([[0.2, 0.2, 0.5, 0.0], [0.5, 0.5, 0.0, 1.0]])
    assert region.room(U, np.array([0])) == pytest.approx(np.array([0.6, 0.0]) / np.sqrt(2))
    assert region.room(U, np.array([2])) == pytest.approx([0.25, 0.75])
    assert region.room(U, np.array([0, 2])) == pytest.approx([0.25, 0.0])
    assert region.room(U, np.array([3])) == pytest.approx([1.0, 1.0]), "no half-space is near"


def test_a_fixed_variable_is_its_value_and_an_absent_one_is_0() -> None:
    space = {
        "limit": Fixed(5),
        "kind": Categorical(["short", "long"]),
        "a": Integer(1, 9),
        "b": Integer(1, 9, when={"kind": ["long"]}),
        "rate": Float(1e-3, 9.0, log=True, when={"kind": ["long"]}),
    }
    opt = Optimizer(space, seed=0, constraints=["a + b <= limit", "a + rate <= 4.5"])
    seen = set()
    for _ in range(40):
        (trial,) = opt.ask()
        p = trial.params
        assert p["a"] + p.get("b", 0) <= 5
        assert p["a"] + p.get("rate", 0.0) <= 4.5
        seen.add((p["kind"], p["a"]))
        opt.tell(trial, -float(p["a"]))
    assert {("short", 4), ("long", 4)} <= seen
