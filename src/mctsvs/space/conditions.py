"""Which variables exist at a point: conditions on the values of other variables.

The searched variables are counted first, 0 to V - 1, and the fixed ones behind them. A fixed variable does not change,
but whether it exists may depend on the values of others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mctsvs.space.variables import Fixed, Float, Integer, Ordinal, Variable
from mctsvs.utils.validation import Array, Indices, InputError

Mask = npt.NDArray[np.bool_]
Needs = dict[str, tuple[float, ...]]
"""Name of a searched variable -> the values, in natural units, of which it must have one."""


@dataclass(frozen=True)
class Gate:
    """A variable, some of its values in natural units, and the variables that need one of them."""

    parent: int
    allowed: Array
    children: Indices


@dataclass(frozen=True)
class Conditions:
    """The gates of all variables. A parent's own gates come before those it is the parent of."""

    gates: tuple[Gate, ...]
    order: Indices  # the searched variables, each behind those it depends on
    n: int  # searched and fixed variables

    @classmethod
    def of(cls, variables: Mapping[str, Variable]) -> Conditions:
        """Of name -> variable: searched ones first, then fixed ones."""
        names = {name: v for v, name in enumerate(variables)}
        tree = _Tree(variables)
        depth = {name: tree.depth(name, ()) for name in variables}
        children: dict[tuple[str, tuple[float, ...]], list[int]] = {}
        for name in variables:
            for parent, allowed in tree.needs[name].items():
                children.setdefault((parent, allowed), []).append(names[name])
        keys = sorted(children, key=lambda key: depth[key[0]])
        gates = tuple(Gate(names[name], np.array(allowed), np.array(children[name, allowed])) for name, allowed in keys)
        searched = [name for name, variable in variables.items() if not isinstance(variable, Fixed)]
        order = np.argsort([depth[name] for name in searched], kind="stable")
        return cls(gates, order, len(variables))

    @property
    def parents(self) -> Indices:
        return np.array(sorted({gate.parent for gate in self.gates}), dtype=np.intp)

    def active(self, x: Array) -> Mask:
        """(..., n) which variables there are at x (..., V)."""
        there = np.ones((*x.shape[:-1], self.n), np.bool_)
        for gate in self.gates:
            opens = there[..., gate.parent] & (x[..., gate.parent, None] == gate.allowed).any(axis=-1)
            there[..., gate.children] &= opens[..., None]
        return there


class _Tree:
    """What each variable needs, found from its parents' needs."""

    def __init__(self, variables: Mapping[str, Variable]) -> None:
        self.variables = variables
        self.needs: dict[str, Needs] = {}
        self._depths: dict[str, int] = {}

    def depth(self, name: str, below: Sequence[str]) -> int:
        """How many conditions deep it is; `below` is the way to it from a variable that depends on it."""
        if name in below:
            circle = " needs ".join(map(repr, [*below[below.index(name) :], name]))
            raise InputError(f"the conditions go round in a circle: {circle}")
        if name not in self._depths:
            when = self.variables[name].when
            for parent, _ in when:
                if parent not in self.variables:
                    raise InputError(f"variable {name!r}: when has {parent!r}, which is not in the space")
            above = [self.depth(parent, (*below, name)) for parent, _ in when]
            self._depths[name] = 1 + max(above, default=-1)
            self.needs[name] = self._needs(name)
        return self._depths[name]

    def _needs(self, name: str) -> Needs:
        found: Needs = {}
        for parent, values in self.variables[name].when:
            variable = self.variables[parent]
            if not isinstance(variable, Fixed):
                found[parent] = _both(found.get(parent), self._natural(name, parent, values))
                continue
            if variable.value not in values:
                raise InputError(
                    f"variable {name!r} does not exist at any point: {parent!r} is fixed at {variable.value!r}, "
                    f"which is not in its when"
                )
            for above, allowed in self.needs[parent].items():  # it has its value wherever it is
                found[above] = _both(found.get(above), allowed)
        return found

    def _natural(self, name: str, parent: str, values: tuple[object, ...]) -> tuple[float, ...]:
        """The values in natural units, sorted."""
        variable = self.variables[parent]
        if isinstance(variable, Float):
            raise InputError(
                f"variable {name!r}: when needs a variable whose values can be listed, and {parent!r} is a Float"
            )
        outside = [value for value in values if not variable.fits(value)]
        if outside and not (isinstance(variable, Integer) and len(outside) < len(values)):
            raise InputError(f"variable {name!r}: when has {outside[0]!r}, which is no value of {parent!r}: {variable}")
        labels = variable.labels
        numbers = variable.numbers if isinstance(variable, Ordinal) else []
        if labels is None:
            return tuple(sorted(float(value) for value in values if variable.fits(value)))  # type: ignore[arg-type]
        return tuple(sorted((numbers or range(len(labels)))[labels.index(value)] for value in values))


def _both(one: tuple[float, ...] | None, other: tuple[float, ...]) -> tuple[float, ...]:
    return other if one is None else tuple(value for value in one if value in other)
