"""Problems of other fields: the rover, the car, weighted LASSO, support vector machines."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mctsvs import InputError, Space
from mctsvs.bench.problems import Problem, families, lasso, make, rover, svm
from mctsvs.bench.problems.mopta import MoptaProblem

pytest.importorskip("sklearn")

Need = Callable[[str], Path]
DATA = {"Rover60": "rover", "MOPTA08": "mopta08", "LassoDNA": "lasso_dna", "SVMSlice_subset": "svm_ctslice_small"}
DIMENSIONS = {
    "Rover60": 60,
    "MOPTA08": 124,
    "LassoDNA": 180,
    "LassoSimple": 60,
    "LassoMedium": 100,
    "LassoHigh": 300,
    "LassoHard": 1000,
    "SVMSlice_subset": 388,
    "CancerSVM": 101,
}
ELSEWHERE = """
import sys, numpy as np
from mctsvs import InputError, Space
from mctsvs.bench.problems import make
for name in sys.argv[1:]:
    try:
        problem = make(name)
    except InputError:  # no data here
        continue
    space = Space.of(problem.space)
    print(name, problem(space.decode(np.random.default_rng(0).random(space.n_coordinates))).hex())
"""
# fmt: off
FEASIBLE = np.array([  # a design that keeps all limits of MOPTA08
    3218, 0, 0, 1395, 40, 656, 0, 3705, 0, 8751, 0, 0, 0, 0, 0, 4966, 0, 0, 0, 0, 0, 236, 0, 307, 0, 1046, 3205, 0,
    0, 8170, 0, 3404, 0, 0, 10000, 6655, 8567, 6604, 5394, 2376, 8729, 6100, 1060, 0, 0, 0, 3225, 1334, 1600, 466,
    0, 0, 4959, 0, 0, 0, 5154, 0, 4196, 2868, 467, 0, 8756, 7120, 0, 8638, 5678, 3393, 0, 1189, 2112, 0, 0, 1597,
    206, 2866, 0, 3336, 8109, 0, 9329, 6227, 3674, 8369, 0, 6683, 7056, 3310, 4264, 602, 2681, 3754, 605, 6373, 0,
    0, 3075, 0, 6844, 9133, 0, 10000, 8031, 690, 0, 4721, 0, 3268, 1001, 1526, 6223, 10000, 10000, 6663, 2046, 2062,
    864, 950, 10000, 6060, 0, 9698, 407, 0,
]) / 1e4
# fmt: on


def point(problem: Problem, seed: int = 0) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    space = Space.of(problem.space)
    return space.decode(np.random.default_rng(seed).random(space.n_coordinates))


@pytest.fixture(scope="module")
def elsewhere() -> dict[str, str]:
    """The value of each problem in another process, by name."""
    command = [sys.executable, "-c", ELSEWHERE, *DIMENSIONS]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return dict(line.split() for line in printed.splitlines())


@pytest.mark.parametrize("name", DIMENSIONS)
def test_every_problem_repeats_here_and_in_another_process(name: str, need: Need, elsewhere: dict[str, str]) -> None:
    if name in DATA:
        need(DATA[name])
    problem = make(name.lower())
    assert (problem.name, problem.dimension, problem.direction) == (name, DIMENSIONS[name], "maximize")
    x = point(problem)
    low, high = problem.bounds.T
    assert ((low <= x) & (x <= high)).all()
    value = problem(x)
    assert np.isfinite(value)
    assert value != problem(point(problem, 1))
    assert pickle.loads(pickle.dumps(problem))(x) == value == make(name)(x)
    assert len(pickle.dumps(problem)) < 100_000  # data stays where it is
    assert elsewhere[name] == value.hex()


@pytest.mark.parametrize("name", DIMENSIONS)
def test_the_list_of_problems_tells_the_truth(name: str, need: Need) -> None:
    if name in DATA:
        need(DATA[name])
    (family,) = [family for family in families() if family.example == name]
    assert family.dimension == str(make(name).dimension)
    assert family.data == DATA.get(name)
    assert family.extra == (None if name in ("Rover60", "MOPTA08") else "sklearn")


@pytest.mark.parametrize("name", DATA)
def test_missing_data_is_said_when_the_problem_is_made(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCTSVS_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytest.raises(InputError, match=DATA[name]):
        make(name)


@pytest.mark.parametrize("name", ["CancerSVM", "LassoSimple"])
def test_only_noise_can_be_added(name: str) -> None:
    x = point(make(name))
    assert make(name, noise=0.5).evaluate(x, np.random.default_rng(0)) != make(name)(x)
    with pytest.raises(InputError, match=f"{name} cannot be varied by shift"):
        make(name, shift=True)


def test_rover_costs_are_those_published(need: Need) -> None:
    need("rover")
    straight = np.repeat((np.linspace(0.05, 0.95, 30) - rover.LOW) / (rover.HIGH - rover.LOW), 2)
    places = rover.path(straight)
    assert places[0] == pytest.approx([0.05, 0.05])
    assert places[-1] == pytest.approx([0.95, 0.95])
    length = 0.9 * np.sqrt(2)
    inside = rover._ground().blocked(places).mean()
    assert 0 < inside < 1
    # no miss at either end: only the length, and what of it lies in obstacles
    assert rover.reward(straight) == pytest.approx(5 - 0.05 * length - 20 * inside * length, abs=0.06)
    standing = np.full(60, (0.05 - rover.LOW) / (rover.HIGH - rover.LOW))  # at the start: misses the goal by 1.8
    assert rover.reward(standing) == pytest.approx(5 - 18.0)
    moved = np.tile((np.array([0.05, 0.15]) - rover.LOW) / (rover.HIGH - rover.LOW), 30)
    assert rover.reward(moved) == pytest.approx(5 - 10 * (0.1 + 1.7))


def test_rover_ground(need: Need) -> None:
    need("rover")
    ground = rover._ground()
    assert ground.centres.shape == (113, 2)
    centre, corner = ground.centres[0], ground.halfwidth * np.ones(2)
    places = np.array([centre, centre - corner, [-0.01, 0.5], [0.5, 1.0], [0.05, 0.05]])
    assert ground.blocked(places).tolist() == [1, 1, 1, 1, 0]


@pytest.mark.parametrize("pattern", ["all", "three", "pairs"])
def test_rover_takes_points_that_repeat(pattern: str, need: Need) -> None:
    need("rover")
    rng = np.random.default_rng(2)
    counts = {"all": [30], "three": [10, 10, 10], "pairs": [2] * 15}[pattern]
    x = np.repeat(rng.random((len(counts), 2)), counts, axis=0).ravel()
    assert np.isfinite(rover.reward(x))
    almost = np.clip(x + 1e-12 * rng.random(60), 0.0, 1.0)
    assert rover.reward(almost) == pytest.approx(rover.reward(x), abs=1e-6)


def test_mopta_feasible_design_is_as_light_as_published(need: Need) -> None:
    need("mopta08")
    problem = make("MOPTA08")
    assert isinstance(problem, MoptaProblem)
    constraints = problem.constraints(FEASIBLE)
    assert constraints.shape == (68,)
    assert (constraints <= 0).all()
    assert 221 < problem.mass(FEASIBLE) < 222.7  # published: 222.2 to 222.7
    assert problem(FEASIBLE) == -problem.mass(FEASIBLE)


def test_mopta_with_measured_constraints(need: Need) -> None:
    need("mopta08")
    problem, penalised = make("MOPTA08c"), make("MOPTA08")
    assert isinstance(penalised, MoptaProblem)
    value, constraints = problem(FEASIBLE)
    assert (problem.direction, value) == ("minimize", penalised.mass(FEASIBLE))
    assert list(constraints.values()) == penalised.constraints(FEASIBLE).tolist()


def test_mopta_penalty(need: Need) -> None:
    need("mopta08")
    problem = make("MOPTA08")
    assert isinstance(problem, MoptaProblem)
    assert problem.optimizer is not None
    assert problem(problem.optimizer) == pytest.approx(problem.optimum, abs=1e-3)
    rng = np.random.default_rng(0)
    for x in [problem.optimizer, *rng.random((3, 124))]:
        over = np.maximum(problem.constraints(x), 0)
        assert over.sum() > 0
        assert problem(x) == pytest.approx(-problem.mass(x) - 10 * over.sum())
    near = np.clip(problem.optimizer + rng.normal(0, 0.01, (30, 124)), 0, 1)
    assert max(problem(x) for x in near) < problem(problem.optimizer)
    with pytest.raises(InputError, match="MOPTA08 takes a vector of 124 numbers"):
        problem.constraints(np.zeros(3))


def test_lasso_dna_with_one_penalty_for_all_is_lasso_cv(need: Need) -> None:
    need("lasso_dna")
    problem = make("LassoDNA")
    best = max(problem(np.full(180, level)) for level in np.linspace(-0.3, 0.3, 7))
    assert best == pytest.approx(-0.306, abs=0.002)
    # the largest penalty silences every feature, so that the mean square of the target (1, 2, 3) is left
    assert problem(np.ones(180)) < -4


@pytest.mark.parametrize("size", lasso.SIZES)
def test_lasso_synthetic(size: str) -> None:
    problem = make(f"Lasso{size}")
    features, count = lasso.SIZES[size]
    assert problem.active is not None
    assert len(problem.active) == count
    x = np.ones(features)
    nothing = problem(x)
    x[problem.active] = -1.0  # penalise all but those that have a coefficient
    assert problem(x) > 0.1 * nothing
    assert problem(x) > problem(np.full(features, -1.0))


def test_lasso_coefficients_meet_the_optimality_conditions() -> None:
    fold = lasso.synthetic("Medium").folds[0]
    penalties = np.exp(np.random.default_rng(0).uniform(-5, 0, 100))
    b = fold.coefficients(penalties)
    slope = fold.X.T @ (fold.y - fold.X @ b) / len(fold.y)
    used = b != 0
    assert 0 < used.sum() < 100
    assert slope[used] == pytest.approx(penalties[used] * np.sign(b[used]), abs=2e-3)
    assert (np.abs(slope[~used]) <= penalties[~used] + 2e-3).all()


def test_svm_says_that_it_is_a_subset(need: Need) -> None:
    need("svm_ctslice_small")
    problem = make("SVMSlice_subset")
    assert "subset" in problem.description
    x = np.full(388, 0.5)
    worse = x.copy()
    worse[-1] = 0.0  # C = 0.01: hardly fits
    assert -1.3 < problem(worse) < problem(x) < 0


def test_cancer_has_variables_of_all_kinds() -> None:
    problem = make("CancerSVM")
    kinds = [type(variable).__name__ for variable in Space.of(problem.space).variables]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {"Float": 35, "Integer": 32, "Categorical": 34}
    sensible = {name: variable.choices[0] for name, variable in svm.variables().items() if hasattr(variable, "choices")}
    sensible |= {f"weight{j}": 1.0 for j in range(30)} | {f"clip{j}": 1 for j in range(30)}
    sensible |= {"components": 20, "penalty": 10.0, "gamma": 0.01, "degree": 3, "offset": 1.0}
    sensible |= {"malignant": 1.0, "tolerance": 1e-3}
    space = Space.of(problem.space)
    value = problem(space.decode(space.encode_params(sensible)))
    assert -0.1 < value < 0
    blind = sensible | {f"weight{j}": 0.0 for j in range(30)}  # sees nothing
    assert problem(space.decode(space.encode_params(blind))) < -0.2
