"""The simulator's problems: repeatable to the bit, in any order and in any process."""

from __future__ import annotations

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from mctsvs.bench.problems import Problem, declare, make, mujoco
from mctsvs.utils.validation import Array, InputError

pytest.importorskip("gymnasium")
pytest.importorskip("mujoco")

NAMES = [robot.name for robot in mujoco.ROBOTS]


def points(problem: Problem, n: int) -> Array:
    return np.random.default_rng(5).uniform(-1, 1, (n, problem.dimension))


@pytest.mark.parametrize("robot", mujoco.ROBOTS, ids=NAMES)
def test_the_numbers_known_beforehand_are_those_of_the_environment(robot: mujoco.Robot) -> None:
    env = mujoco.environment(robot)
    assert env.observation_space.shape == (robot.observations,)
    assert env.action_space.shape == (robot.actions,)
    assert env.spec.max_episode_steps == 1000


def test_dimensions_are_the_papers() -> None:
    dimensions = {name: make(name).dimension for name in NAMES}
    assert (dimensions["Hopper"], dimensions["Walker2d"]) == (33, 102)
    assert (dimensions["HalfCheetah"], dimensions["Swimmer"]) == (102, 16)
    hopper = make("hopper")
    assert hopper.direction == "maximize"
    assert hopper.bounds.tolist() == [[-1.0, 1.0]] * 33
    assert hopper.paper_options["cp"] == 50


@pytest.mark.parametrize("name", ["Hopper", "Walker2d"])
def test_another_process_finds_the_same_value_bit_for_bit(name: str) -> None:
    problem = make(name, seed=3)
    xs = points(problem, 4)
    here = [problem(x).hex() for x in xs]
    code = (
        "import sys, numpy as np; from mctsvs.bench.problems import make;"
        f"problem = make({name!r}, seed=3);"
        "xs = np.random.default_rng(5).uniform(-1, 1, (4, problem.dimension));"
        "print(*(problem(x).hex() for x in xs[::-1]))"  # in another order, too
    )
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert there.stdout.split()[::-1] == here
    assert len(set(here)) == 4


def test_the_value_does_not_depend_on_what_was_evaluated_before() -> None:
    problem = make("Hopper")
    first, second = points(problem, 2)
    value = problem(first)
    problem(second)
    assert problem(first) == value
    assert pickle.loads(pickle.dumps(problem))(first) == value
    assert make("Hopper", seed=1)(first) != value


def test_threads_have_an_environment_each() -> None:
    problem = make("Hopper")
    xs = points(problem, 8)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(problem, xs)) == [problem(x) for x in xs]


@pytest.mark.parametrize("name", ["HalfCheetah", "Swimmer"])
def test_robots_that_never_fall_run_for_a_thousand_steps(name: str) -> None:
    problem = make(name)
    values = [problem(x) for x in points(problem, 2)]
    assert np.isfinite(values).all()
    assert len(set(values)) == 2


@pytest.mark.parametrize("name", ["Ant", "Humanoid"])
def test_large_robots_have_a_value(name: str) -> None:
    problem = make(name)
    assert np.isfinite(problem(points(problem, 1)[0]))


def test_warnings_leave_no_file_behind(tmp_path: Path) -> None:
    code = "from mctsvs.bench.problems import make; problem = make('HalfCheetah'); problem([0.5] * 102)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert result.stderr == ""


def test_noise_is_added_and_nothing_else_can_be_varied() -> None:
    x = points(make("Hopper"), 1)[0]
    assert make("Hopper", noise=1.0).evaluate(x, np.random.default_rng(0)) != make("Hopper")(x)
    with pytest.raises(InputError, match="Hopper cannot be varied by shuffle"):
        make("Hopper", shuffle=True)


def test_a_missing_library_is_named_with_the_command_that_installs_it() -> None:
    with pytest.raises(InputError, match=r"needs not_there, not installed here: pip install 'mctsvs\[mujoco\]'"):
        declare.require("Hopper", "mujoco", "gymnasium", "not_there")
