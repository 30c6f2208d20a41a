"""The search space: variables in their natural units on one side, the unit cube on the other.

Notation, used throughout:
  V  variables; D unit-cube coordinates (a category of c choices owns c of them, any other variable one)
  u  point of the unit cube, shape (D,) or (n, D)
  x  the same point in natural units, shape (V,) or (n, V): floats, whole floats, indices of choices
Several u stand for one x when a variable is discrete; `snap` picks the canonical one among them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from reprlib import repr as short  # a bad value may be a million numbers long
from typing import Any

import numpy as np

from mctsvs.common import Array, InputError, State
from mctsvs.space.scales import Scale
from mctsvs.space.variables import Categorical, Float, Floats, Integer, Variable, is_list, number, variable_of


class Space:
    """The variables of a problem and their map to the unit cube; made by `Space.of`, never changed.

    `offsets`, shape (V + 1,): variable v owns the coordinates offsets[v]:offsets[v + 1]. `owner`, shape (D,):
    the variable of each coordinate. `named`: built from a dict, so that an objective takes one.

    >>> space = Space.of({"rate": (0.0, 1.0), "layers": Integer(1, 4), "kernel": Categorical(["rbf", "rq"])})
    >>> space.params(np.array([0.5, 0.3, 0.9, 0.1]))
    {'rate': 0.5, 'layers': 2, 'kernel': 'rbf'}
    """

    def __init__(self, bounds: Array, variables: Sequence[Variable] = (), names: Sequence[str] | None = None):
        """For `Space.of`, after validation: bounds (V, 2); no `variables` when all are plain floats."""
        if not len(bounds):
            raise InputError("the space has 0 variables: it must have at least one")
        self._names, self._variables = None if names is None else tuple(names), tuple(variables)
        self._choices = {v: var.choices for v, var in enumerate(variables) if isinstance(var, Categorical)}
        sizes = np.ones(len(bounds), np.intp)
        sizes[list(self._choices)] = [len(choices) for choices in self._choices.values()]
        self.offsets = np.concatenate([[0], np.cumsum(sizes)])
        self.owner = np.repeat(np.arange(len(bounds)), sizes)
        self.offsets.flags.writeable = self.owner.flags.writeable = False
        self._scale = Scale.of(np.array(bounds.T), self._variables)
        # Categories with the same number c of choices go together, (m,) variables and (m, c) coordinates.
        alike: dict[int, list[int]] = {}
        for v, choices in self._choices.items():
            alike.setdefault(len(choices), []).append(v)
        self._alike = [(np.array(vs), self.offsets[vs][:, None] + np.arange(c)) for c, vs in alike.items()]

    @classmethod
    def of(cls, spec: object) -> Space:
        """The space that `spec` describes.

        `spec` is a Space; a sequence of (low, high) pairs or a (V, 2) array; a sequence of variables; or a
        dict of name -> variable, where a variable is a Float, an Integer, a Categorical, a (low, high) pair
        or an Optuna distribution.
        """
        if isinstance(spec, Space):
            return spec
        items: Any = list(spec.values()) if isinstance(spec, Mapping) else spec
        names = tuple(spec) if isinstance(spec, Mapping) else None
        if not is_list(items):
            raise InputError(f"{short(spec)} must be a list of (low, high) pairs or a dict of variables")
        for name in names or ():
            if not isinstance(name, str):
                raise InputError(f"variable name {name!r} must be a string")
        try:
            table = np.asarray(items)
        except ValueError:  # ragged, so that some items are not pairs
            table = np.zeros(0)
        if table.dtype.kind in "iuf" and table.ndim == 2 and table.shape[1] == 2:
            # The arrays find the first bad pair; the scalar check of that one pair then writes the sentence.
            table = table.astype(np.float64)
            with np.errstate(over="ignore", invalid="ignore"):
                width = table[:, 1] - table[:, 0]
            for i in np.flatnonzero(~((width > 0) & (width < np.inf)))[:1]:
                variable_of(items[i], names[i] if names else f"x{i}")
            return cls(table, (), names)
        variables = [variable_of(item, names[i] if names else f"x{i}") for i, item in enumerate(items)]
        plain = all(isinstance(v, Float) and not v.log and v.step is None for v in variables)
        ends = [(0, len(v.choices) - 1) if isinstance(v, Categorical) else (v.low, v.high) for v in variables]
        return cls(np.array(ends, np.float64).reshape(-1, 2), () if plain else variables, names)

    @cached_property
    def names(self) -> Sequence[str]:
        """The V names; x0, x1, ... where none were given."""
        return tuple(f"x{v}" for v in range(len(self))) if self._names is None else self._names

    @property
    def variables(self) -> Sequence[Variable]:
        """The V variables; those of a box are made one by one when they are asked for."""
        return self._variables or Floats(*self._scale.bounds)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_variables(self) -> int:
        return len(self)

    @property
    def n_coordinates(self) -> int:
        return len(self.owner)

    @property
    def named(self) -> bool:
        return self._names is not None

    @property
    def bounds(self) -> Array:
        """(V, 2) the lowest and the highest value; of a category, its first and last index."""
        return self._scale.bounds.T

    @cached_property
    def sizes(self) -> Array:
        """(V,) how many values each variable has; infinite for a continuous one."""
        return self._scale.sizes

    @property
    def size(self) -> float:
        """How many points there are; infinite where a variable is continuous."""
        with np.errstate(over="ignore"):
            return float(np.prod(self.sizes))

    def values(self, v: int) -> Array:
        """All values of a variable that has finitely many, in natural units."""
        grid = self._scale.grid
        (low, high), at = self.bounds[v], np.flatnonzero(grid.variables == v)
        step = float(grid.step[at[0]]) if len(at) else 1.0
        return np.asarray(np.minimum(low + step * np.arange(self.sizes[v]), high))

    def other_value(self, v: int, value: float, reach: int, rng: np.random.Generator) -> float:
        """Another value of such a variable, at most `reach` steps away; of a category, any other."""
        values = self.values(v)
        if len(values) == 1:
            return value
        at = int(np.abs(values - value).argmin())
        near = values if v in self._choices else values[max(0, at - reach) : at + reach + 1]
        others = near[near != values[at]]
        return float(others[rng.integers(len(others))])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Space):
            return NotImplemented
        same = np.array_equal(self.bounds, other.bounds)
        return same and self._variables == other._variables and self._names == other._names

    def __repr__(self) -> str:
        return f"Space({self.n_variables} variables, {self.n_coordinates} coordinates)"

    def snap(self, u: Array) -> Array:
        """The canonical point that decodes as `u` does: middles of bins, exact one-hot; floats stay."""
        point = np.clip(_points(u, self.n_coordinates, "u"), 0.0, 1.0)
        point += 0.0  # -0.0 becomes 0.0, so that equal points have equal bytes
        return self._place(point, self.decode(point)) if self._variables else point

    def decode(self, u: Array) -> Array:
        """u, (D,) or (n, D), in natural units: (V,) or (n, V), always within the bounds."""
        point = np.clip(_points(u, self.n_coordinates, "u"), 0.0, 1.0)
        t = point.take(self.offsets[:-1], axis=-1) if self._choices else point
        x = self._scale.decode(t)
        for variables, coordinates in self._alike:
            x[..., variables] = point[..., coordinates].argmax(axis=-1)
        return np.clip(x, *self._scale.bounds, out=x)

    def encode(self, x: Array) -> Array:
        """The canonical u, (D,) or (n, D), of natural units x, (V,) or (n, V): the inverse of `decode`."""
        x = _points(x, len(self), "x")
        bad = self._scale.misfits(x)
        if bad.any():
            at = tuple(np.argwhere(bad)[0].tolist())
            raise self._misfit(at[-1], x[at].item())
        point = np.zeros((*x.shape[:-1], self.n_coordinates))
        point[..., self.offsets[:-1]] = self._scale.encode(x)
        return self._place(point, x)

    def params(self, u: Array) -> dict[str, Any]:
        """name -> Python value (float, int, or the choice itself) at u, (D,)."""
        if np.ndim(u) != 1:
            raise InputError(f"u has shape {np.shape(u)}: it must be one point, ({self.n_coordinates},)")
        values: list[Any] = self.decode(u).tolist()
        for v in np.flatnonzero(self._scale.whole).tolist():
            values[v] = self._choices[v][int(values[v])] if v in self._choices else int(values[v])
        return dict(zip(self.names, values, strict=True))

    def encode_params(self, params: Mapping[str, Any]) -> Array:
        """The canonical u, (D,), of name -> value: the inverse of `params`."""
        if not isinstance(params, Mapping):
            raise InputError(f"{short(params)} must be a dict of name -> value")
        for name in params.keys() ^ set(self.names):
            wrong = "not in the space" if name in params else "missing"
            raise InputError(f"variable {name!r} is {wrong}: the names must be {short(self.names)}")
        x = np.zeros(len(self))
        for v, name in enumerate(self.names):
            value, choices = _nested(params[name], tuple), self._choices.get(v)  # JSON has no tuples
            x[v] = number(value) if choices is None else [*choices, value].index(value)
            if math.isnan(x[v]) or x[v] > self.bounds[v, 1]:
                raise self._misfit(v, value)
        return self.encode(x)

    def to_state(self) -> State:
        """The space as plain data; `Space.from_state` makes an equal one."""
        names = {} if self._names is None else {"names": list(self._names)}
        if not self._variables:
            return {"bounds": self.bounds.copy(), **names}
        rows = [[type(v).__name__, *_nested(tuple(vars(v).values()), list)] for v in self._variables]
        return {"variables": rows, **names}

    @classmethod
    def from_state(cls, state: State) -> Space:
        """The space saved by `to_state`."""
        kinds: dict[str, Any] = {"Float": Float, "Integer": Integer, "Categorical": Categorical}
        names, items = state.get("names"), state.get("bounds")
        if items is None:
            items = [kinds[kind](*_nested(arguments, tuple)) for kind, *arguments in state["variables"]]
        return cls.of(items if names is None else dict(zip(names, items, strict=True)))

    def _place(self, point: Array, x: Array) -> Array:
        """Move the coordinates of the discrete variables, in `point` itself, to where x has its place."""
        scale, first = self._scale, self.offsets
        point[..., first[scale.grid.variables]] = scale.grid.encode(x)
        point[..., first[scale.whole_logs]] = scale.whole_log_middles(x)
        for variables, coordinates in self._alike:
            chosen = x.take(variables, axis=-1)[..., None]
            point[..., coordinates] = chosen == np.arange(coordinates.shape[1])
        return point

    def _misfit(self, v: int, value: object) -> InputError:
        return InputError(f"variable {self.names[v]!r}: value {short(value)} must fit {self.variables[v]}")


def _nested(value: Any, kind: type) -> Any:
    """The value with every list and tuple in it made a `kind`, and numpy's numbers Python's."""
    value = value.item() if isinstance(value, np.generic) else value
    return kind(_nested(v, kind) for v in value) if isinstance(value, list | tuple) else value


def _points(points: Array, width: int, letter: str) -> Array:
    array = np.asarray(points, np.float64)
    if array.ndim not in (1, 2) or array.shape[-1] != width:
        raise InputError(f"{letter} has shape {array.shape}: it must be ({width},) or (n, {width})")
    if np.isnan(array).any():
        raise InputError(f"{letter} has nan at {np.argwhere(np.isnan(array))[0].tolist()}: it must be finite")
    return array
