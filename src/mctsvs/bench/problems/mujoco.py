"""Robots that learn to move (gymnasium's MuJoCo environments): the D numbers are the matrix of a linear policy.

As in the paper (Section 5.2): x in [-1, 1] is the matrix that turns normalised observations into actions, row by row,
one row an action, and the value is the mean return of three episodes. The action is clipped to what the motors allow.

Its authors normalise by a running mean and standard deviation that go on from one evaluation to the next, so that a
value depends on all evaluations before it. Here they are part of the evaluation: each begins with the statistics of
2,000 observations under random actions, drawn once from the problem's seed and counted as 30, and runs on through its
three episodes. The choice was made after trying others on Hopper, which docs/design.md lists.
Given the problem's seed the value is thus a function of x alone: the same in any order, in any process, bit for bit on
one machine with one version of MuJoCo. The three episodes start from three states that the seed fixes too, where the
paper draws new ones at every evaluation; add `noise` for a noisy objective, or take another seed for other starts.

The environments are gymnasium's version 5; the paper used those of version 2, whose returns differ somewhat.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mctsvs.bench.problems.declare import box, single
from mctsvs.objectives.problem import Family, Variation
from mctsvs.utils.validation import Array, InputError

EPISODES = 3
VERSION = 5  # of gymnasium's environments
SAMPLE = 2000  # observations under random actions that an evaluation's normaliser begins with
PRIOR = 30  # how many observations they count for
SMALLEST_SPREAD = 1e-6  # an observation that hardly moves is left out rather than blown up
OPTIONS = {"cp": 50.0}  # the paper's


@dataclass(frozen=True)
class Robot:
    """An environment and its numbers, known before gymnasium is loaded."""

    name: str
    observations: int
    actions: int
    options: tuple[tuple[str, Any], ...] = ()
    """What the paper sets beside the exploration constant."""

    @property
    def dimension(self) -> int:
        return self.observations * self.actions


ROBOTS = (
    Robot("Hopper", 11, 3, (("d", 10),)),
    Robot("Walker2d", 17, 6, (("d", 20),)),
    Robot("HalfCheetah", 17, 6),
    Robot("Swimmer", 8, 2),
    Robot("Ant", 105, 8),
    Robot("Humanoid", 348, 17),
)

_MADE = threading.local()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """MuJoCo's warnings go nowhere: it would write a file MUJOCO_LOG.TXT into the user's folder."""
    import mujoco

    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda message: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


def environment(robot: Robot) -> Any:
    """The environment of this thread, made when first used: it is no part of a problem's pickle."""
    made: dict[str, Any] = _MADE.__dict__.setdefault("environments", {})
    if robot.name not in made:
        import gymnasium

        with quiet():
            env = gymnasium.make(f"{robot.name}-v{VERSION}", disable_env_checker=True)
        if (env.observation_space.shape, env.action_space.shape) != ((robot.observations,), (robot.actions,)):
            raise InputError(
                f"the environment {robot.name}-v{VERSION} of the installed gymnasium has other numbers of observations "
                f"and actions than {robot.observations} and {robot.actions}: install gymnasium 1.x"
            )
        made[robot.name] = env
    return made[robot.name]


@functools.cache
def sample(robot: Robot, seed: int) -> tuple[Array, Array]:
    """Mean and standard deviation of the observations under uniformly random actions."""
    env, rng = environment(robot), np.random.default_rng([seed, 1])
    low, high = env.action_space.low, env.action_space.high
    seen: list[Array] = []
    done = True
    while len(seen) < SAMPLE:
        if done:
            observation, _ = env.reset(seed=int(rng.integers(2**31)))
        seen.append(observation)
        observation, _, ended, stopped, _ = env.step(rng.uniform(low, high))
        done = ended or stopped
    table = np.array(seen)
    return table.mean(axis=0), table.std(axis=0)


class Normaliser:
    """Running mean and standard deviation of observations, begun with those of `sample`."""

    def __init__(self, robot: Robot, seed: int) -> None:
        mean, deviation = sample(robot, seed)
        self.count, self.mean, self.squares = float(PRIOR), mean.copy(), PRIOR * deviation**2

    def __call__(self, observation: Array) -> Array:
        """The observation, counted and then normalised; a component that never moved gives 0."""
        self.count += 1.0
        gap = observation - self.mean
        self.mean += gap / self.count
        rest = observation - self.mean
        self.squares += gap * rest
        deviation = np.sqrt(self.squares / self.count)
        return np.divide(rest, deviation, out=np.zeros_like(rest), where=deviation > SMALLEST_SPREAD)


@dataclass(frozen=True)
class LinearPolicy:
    """The mean return of the policy that x is the matrix of."""

    robot: Robot
    seed: int

    def __call__(self, x: Array) -> float:
        with quiet():
            return self._mean_return(x)

    def _mean_return(self, x: Array) -> float:
        env, normalised = environment(self.robot), Normaliser(self.robot, self.seed)
        low, high = env.action_space.low, env.action_space.high
        matrix = x.reshape(self.robot.actions, self.robot.observations)
        total = 0.0
        for start in np.random.SeedSequence(self.seed).generate_state(EPISODES).tolist():
            observation, _ = env.reset(seed=start)
            done = False
            while not done:
                action = np.clip(matrix @ normalised(observation), low, high)
                observation, reward, ended, stopped, _ = env.step(action)
                total += float(reward)
                done = ended or stopped
        return total / EPISODES


def _family(robot: Robot) -> Family:
    def details(variation: Variation) -> dict[str, Any]:
        return {"function": LinearPolicy(robot, variation.seed), "paper_options": {**OPTIONS, **dict(robot.options)}}

    text = f"MuJoCo {robot.name}-v{VERSION} (the paper: v2), linear policy, mean return of {EPISODES} episodes"
    bounds, needs = box(-1.0, 1.0, robot.dimension), ("gymnasium", "mujoco")
    return single(
        robot.name, robot.name, text, text, bounds, details, needs=needs, evaluation="simulator", extra="mujoco"
    )


FAMILIES = [_family(robot) for robot in ROBOTS]
