"""What every layer shares: the error for bad input, array types, and plain-data random-generator state."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
"""Any array of 64-bit floats."""

Indices = npt.NDArray[np.intp]
"""Positions of variables or coordinates."""

State = dict[str, Any]
"""Plain numbers, strings, lists, dicts and numpy arrays: what an engine saves, never code."""


class InputError(ValueError):
    """Something the caller gave is wrong: one sentence that names the value and what would be right."""


def generator_state(rng: np.random.Generator) -> State:
    """The generator's state as plain data; `restore_generator` continues its stream exactly."""
    return dict(rng.bit_generator.state)


def restore_generator(state: State) -> np.random.Generator:
    """The generator whose state was saved by `generator_state`."""
    rng = np.random.Generator(np.random.PCG64())
    rng.bit_generator.state = state
    return rng
