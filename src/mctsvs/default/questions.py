"""What can be asked of the objective: a point, and what its value will be compared with."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mctsvs.common import Array, Indices
from mctsvs.default.corners import Flip


class Kind(Enum):
    """Of a question, in the order in which a run comes to ask them; what it is for, in the words that people see."""

    DESIGN = "first points"  # what is it like there?
    PROBE = "probing a group"  # does one of these variables, never changed before, matter?
    TEST = "testing a group"  # does one of these variables matter?
    AUDIT = "auditing the rejected"  # do the rejected variables matter after all?
    STEP = "step in the found variables"  # is this better, with other values of the found variables?
    LOCAL = "small step in the found variables"  # the same, inside the trust region
    NUDGE = "looking for noise"  # is the value nearly the same right beside the incumbent, or is there noise?
    CLOSE = "step close to the best point"  # is this better, near a point beyond which no model predicts anything?
    ALL = "step in many variables"  # is this better, with other values of all variables not rejected, or found?
    CHALLENGE = "step in many variables, told apart"  # the same by a model that must show what it is worth


@dataclass(frozen=True, eq=False)
class Question:
    """A point to propose and what its value will be compared with; kept until the value is told."""

    kind: Kind
    x: Array
    variables: Indices  # that were moved to make x
    level: float  # the incumbent's value at the time
    base: Array | None = None  # the incumbent, where x is a change of it that tells whether variables matter
    flip: Flip | None = None  # where x is a corner of a box
