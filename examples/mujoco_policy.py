"""A linear policy in MuJoCo: 16 numbers that turn what the swimmer feels into what it does.

pip install 'mctsvs[mujoco]'
python examples/mujoco_policy.py            # QUICK=1: a few evaluations only
"""

from __future__ import annotations

import os

import gymnasium
import numpy as np

import mctsvs
from mctsvs.utils.validation import Array

QUICK = bool(os.environ.get("QUICK"))
BUDGET, STEPS = (8, 50) if QUICK else (100, 400)


class Swim:
    """The reward of an episode, with noise from the random start left out: every episode begins alike."""

    def __init__(self) -> None:
        self.world = gymnasium.make("Swimmer-v5", max_episode_steps=STEPS)
        self.shape = (*self.world.action_space.shape, *self.world.observation_space.shape)

    def __call__(self, x: Array) -> float:
        policy, total = x.reshape(self.shape), 0.0
        felt, _ = self.world.reset(seed=0)
        for _ in range(STEPS):
            felt, reward, over, cut, _ = self.world.step(np.clip(policy @ felt, -1.0, 1.0))
            total += float(reward)
            if over or cut:
                break
        return total


def main() -> None:
    swim = Swim()
    result = mctsvs.maximize(swim, [(-1.0, 1.0)] * int(np.prod(swim.shape)), budget=BUDGET, seed=1, progress=True)
    print(result)


if __name__ == "__main__":
    main()
