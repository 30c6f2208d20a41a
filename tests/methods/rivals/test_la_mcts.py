"""LA-MCTS: the tree of regions, the leaf it leads to, and TuRBO kept inside."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from mctsvs import Optimizer, testing
from mctsvs.bench import problems
from mctsvs.bench.record import run
from mctsvs.gp.standardize import standardise
from mctsvs.methods.base import Observation, Pending
from mctsvs.methods.history import History
from mctsvs.methods.rivals.la_mcts import LAMCTS, PartitionOptions, fit, grow, select, split
from mctsvs.methods.solvers.subspace import Subspace
from mctsvs.methods.solvers.turbo import TuRBO, TuRBOOptions
from mctsvs.utils.validation import Array, InputError

pytest.importorskip("sklearn")


def cloud(n: int = 120, D: int = 6) -> tuple[Array, Array]:
    """Points whose value is large in the upper half of the first coordinate."""
    X = np.random.default_rng(0).random((n, D))
    return X, standardise(np.where(X[:, 0] > 0.5, 1.0, 0.0) + 0.1 * X[:, 1])


def test_the_boundary_learns_where_values_are_good() -> None:
    X, z = cloud()
    boundary = split(X, z, 1)
    assert boundary is not None
    fresh = np.random.default_rng(1).random((500, 6))
    clear = np.abs(fresh[:, 0] - 0.5) > 0.1
    assert (boundary(fresh) == (fresh[:, 0] > 0.5))[clear].mean() > 0.9


def test_the_boundary_gives_the_numbers_of_the_library() -> None:
    from sklearn.svm import SVC

    X, z = cloud(40)
    labels = (z > 0).astype(int)
    boundary = fit(X, labels, 3)
    machine = SVC(gamma="scale").fit(X, labels)
    fresh = np.random.default_rng(1).random((100, 6))
    assert np.allclose(boundary.decision(fresh), machine.decision_function(fresh), atol=1e-3)  # its own tolerance


def test_nodes_split_into_disjoint_parts_with_the_better_one_first() -> None:
    X, z = cloud()
    root = grow(X, z, 20, 7)
    nodes = list(root.walk())
    assert len(nodes) > 3
    for node in nodes:
        assert node.value == pytest.approx(z[node.rows].mean())
        if node.children is not None:
            good, bad = node.children
            assert good.value >= bad.value
            assert np.array_equal(np.sort(np.concatenate([good.rows, bad.rows])), node.rows)
            assert len(node.rows) > 20
    assert sorted(np.concatenate([n.rows for n in nodes if n.children is None])) == list(range(len(z)))


def test_points_that_cannot_be_told_apart_stay_together() -> None:
    assert split(np.full((30, 3), 0.5), np.zeros(30), 0) is None
    outlier = np.full((30, 3), 0.5)
    outlier[0] = 1.0
    assert split(outlier, np.zeros(30), 0) is None
    assert grow(np.full((30, 3), 0.5), np.zeros(30), 10, 0).children is None


def test_little_exploration_leads_to_good_leaves_and_much_to_rare_ones() -> None:
    X, z = cloud()
    root = grow(X, z, 20, 7)
    assert all(good for _, good in select(root, 0.0).path)
    node = root
    for _, good in select(root, 1e6).path:
        assert node.children is not None
        sizes = [len(child.rows) for child in node.children]
        assert sizes[0 if good else 1] == min(sizes)
        node = node.children[0 if good else 1]


def test_a_leaf_contains_its_own_points_and_no_others() -> None:
    X, z = cloud()
    leaf = select(grow(X, z, 20, 7), 0.1)
    assert np.array_equal(np.flatnonzero(leaf.inside(X)), leaf.rows)


def test_turbo_stays_inside_and_starts_at_the_best_point_there() -> None:
    rng = np.random.default_rng(0)
    history = History(5)
    for x in rng.random((40, 5)):
        history.add(x, -float(((x - 0.1) ** 2).sum()))  # the optimum is outside
    rows = np.flatnonzero(history.X[:, 0] > 0.6)
    solver = TuRBO(TuRBOOptions(candidates=200))
    subspace = Subspace(history, np.arange(5), np.empty((0, 5)))
    solver.start(subspace, rows, lambda X: X[:, 0] > 0.6)
    _, centre, values = solver.regions[0].condition(subspace)
    assert np.array_equal(centre, history.X[rows[np.argmax(history.y[rows])]])
    assert len(values) == 40  # points outside teach the model
    assert (solver.propose(8, subspace, rng)[:, 0] > 0.6).all()


def test_candidates_come_nearer_where_rejection_finds_none() -> None:
    solver = TuRBO(TuRBOOptions(candidates=100))
    centre = np.full(4, 0.5)
    solver.inside = lambda X: np.abs(X - 0.5).max(axis=1) < 0.02
    points = solver.candidates(np.zeros(4), np.ones(4), centre, np.random.default_rng(0))
    assert len(points) >= 25
    assert solver.inside(points).all()
    solver.inside = lambda X: np.zeros(len(X), dtype=np.bool_)  # nowhere at all: still points to go on with
    assert len(solver.candidates(np.zeros(4), np.ones(4), centre, np.random.default_rng(0))) == 100


def test_a_region_that_starts_anew_does_so_inside() -> None:
    solver = TuRBO(TuRBOOptions(start_points=5))
    solver.inside = lambda X: X[:, 0] > 0.6
    points = solver.fresh_design(3, np.random.default_rng(0))
    assert len(points) == 5
    assert (points[:, 0] > 0.6).all()
    solver.inside = lambda X: np.zeros(len(X), dtype=np.bool_)
    assert len(solver.fresh_design(3, np.random.default_rng(0))) == 5


def test_the_tree_is_grown_once_a_burst() -> None:
    options = PartitionOptions(initial_points=10, samples=20, candidates=100)
    engine = LAMCTS(np.arange(9), np.random.default_rng(0), options)
    grown = []
    for _ in range(70):
        (p,) = engine.propose(1, Pending.of([], 8))
        engine.observe([Observation(p.x, -float(((p.x - 0.3) ** 2).sum()), p.variables, p.proposal_id)])
        grown.append(engine.grown)
    assert sorted(set(grown)) == [0, 10, 30, 50]


@pytest.mark.parametrize("check", testing.CHECKS, ids=lambda check: check.__name__)
def test_conformance_while_the_tree_is_deep(check: Any) -> None:
    """The suite's forty evaluations end within the first burst; short bursts and small leaves divide the space."""
    check("la-mcts-turbo", {"samples": 8, "leaf_size": 6, "penalty": 10.0, "candidates": 200}, testing.BUDGET)


def test_one_hundred_evaluations_of_a_mixed_space() -> None:
    opt = Optimizer(testing.MIXED, method="la-mcts-turbo", seed=1)
    for _ in range(100):
        (trial,) = opt.ask()
        opt.tell(trial, testing.mixed_objective(trial.params))
    assert float(opt.best.value or 0.0) < 0.5  # the second best category costs 0.4


def test_one_hundred_evaluations_of_two_hundred_variables() -> None:
    record = run(problems.make("Hartmann6_200", shuffle=True, seed=3), "la-mcts-turbo", budget=100, seed=3)
    assert record.best is not None
    assert record.best > 2.0  # this seed: 2.69; random search 1.58


def test_the_number_of_threads_changes_nothing() -> None:
    """More than 256 points: only then does the library divide k-means among its threads."""
    code = (
        "import numpy as np; from mctsvs.methods.rivals.la_mcts import grow;"
        "X = np.random.default_rng(0).random((400, 9)); z = np.sin(5 * X[:, 0]) + X[:, 1];"
        "print([[*n.rows.tolist(), n.value.hex()] for n in grow(X, z, 150, 5).walk()])"
    )
    trees = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "OMP_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2")
    }
    assert len(trees) == 1


@pytest.mark.parametrize(
    "options", [{"leaf_size": 1}, {"samples": 0}, {"initial_points": 0}, {"cp": -1.0}, {"penalty": 0.0}]
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(InputError, match=f"{name}="):
        PartitionOptions(**options)
