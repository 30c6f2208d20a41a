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
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from reprlib import repr as short  # a bad value may be a million numbers long
from typing import Any, TypeAlias

import numpy as np

from mctsvs.common import Array, InputError, State

# Up to here a grid index, and a whole number on the log scale, survives the way to [0, 1] and back exactly.
_LARGEST = 2**40


@dataclass(frozen=True)
class Float:
    """A real number in [low, high]; `log` searches its logarithm, `step` keeps it on low + k * step.

    >>> Space.of({"rate": Float(0.0, 10.0)}).params(np.array([0.25]))
    {'rate': 2.5}
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None

    def __post_init__(self) -> None:
        _check_numeric(self)


@dataclass(frozen=True)
class Integer:
    """A whole number in [low, high], both included; `step` keeps it on low + k * step.

    >>> Space.of({"layers": Integer(1, 4)}).params(np.array([0.99]))
    {'layers': 4}
    """

    low: int
    high: int
    log: bool = False
    step: int = 1

    def __post_init__(self) -> None:
        for value in (self.low, self.high, self.step):
            if not (_number(value).is_integer() and abs(value) <= _LARGEST):
                raise InputError(f"{short(value)} must be a whole number from -2**40 to 2**40")
        _check_numeric(self)


@dataclass(frozen=True)
class Categorical:
    """One of several choices without an order: None, bools, numbers, strings, or tuples of these.

    >>> Space.of({"kernel": Categorical(["rbf", "linear"])}).params(np.array([0.2, 0.7]))
    {'kernel': 'linear'}
    """

    choices: Sequence[Any]

    def __post_init__(self) -> None:
        if not _is_list(self.choices) or not len(self.choices):
            raise InputError(f"choices {short(self.choices)} must be a list of at least one value")
        choices = tuple(c.item() if isinstance(c, np.generic) else c for c in self.choices)
        for choice in choices:
            if not _is_plain(choice):
                raise InputError(f"choice {short(choice)} must be None, a bool, number, string or tuple")
        if len(set(choices)) < len(choices):
            twice = next(c for i, c in enumerate(choices) if c in choices[:i])
            raise InputError(f"choice {twice!r} is there twice: choices must differ (1, 1.0 and True do not)")
        object.__setattr__(self, "choices", choices)  # a tuple, so that equality and hashing work


Variable: TypeAlias = Float | Integer | Categorical


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
        low, high = self._low, self._high = np.array(bounds.T)
        self._names, self._variables = None if names is None else tuple(names), tuple(variables)
        self._choices = {v: var.choices for v, var in enumerate(variables) if isinstance(var, Categorical)}
        self.named, self.n_variables = names is not None, len(bounds)
        sizes = np.ones(len(bounds), np.intp)
        sizes[list(self._choices)] = [len(choices) for choices in self._choices.values()]
        self.offsets = np.concatenate([[0], np.cumsum(sizes)])
        self.n_coordinates = int(self.offsets[-1])
        self.owner = np.repeat(np.arange(len(bounds)), sizes)
        self.offsets.flags.writeable = self.owner.flags.writeable = False

        log, whole, step = np.zeros(len(low), np.bool_), np.zeros(len(low), np.bool_), np.zeros(len(low))
        for v, var in enumerate(variables):
            whole[v] = not isinstance(var, Float)
            if not isinstance(var, Categorical):
                log[v], step[v] = var.log, var.step or 0.0
        self._whole, self._logs, self._log_whole = whole, np.flatnonzero(log), np.flatnonzero(log & whole)

        # The ends of the interval that u crosses linearly: of x or, with half a unit of margin so that the
        # first and last whole number have a full bin as the others do, of log x.
        margin = np.where(whole, 0.5, 0.0)[self._logs]
        self._start, self._end = low.copy(), high.copy()
        self._start[self._logs] = np.log(low[self._logs] - margin)
        self._end[self._logs] = np.log(high[self._logs] + margin)

        self._grid = grid = np.flatnonzero((step > 0) & ~log)
        self._grid_low, self._step, width = low[grid], step[grid], (high - low)[grid]
        # The slack keeps the last value of 0 to 0.3 in steps of 0.1, where the division falls short of 3.
        slack = width / self._step * (1 + 2.0**-50) + 1e-9
        self._bins = np.floor(np.where(whole[grid], width // self._step, slack)) + 1.0

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
        if not _is_list(items):
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
                _variable(items[i], names[i] if names else f"x{i}")
            return cls(table, (), names)
        variables = [_variable(item, names[i] if names else f"x{i}") for i, item in enumerate(items)]
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
        return self._variables or _Floats(self._low, self._high)

    def __len__(self) -> int:
        return self.n_variables

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Space):
            return NotImplemented
        same = np.array_equal(self._low, other._low) and np.array_equal(self._high, other._high)
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
        x: Array = 1.0 - t  # this form, unlike start + t * width, meets both ends exactly
        x *= self._start
        x += t * self._end
        if self._variables:
            with np.errstate(over="ignore"):  # exp(log(high)) may pass the largest float; it is clipped below
                x[..., self._logs] = np.exp(x.take(self._logs, axis=-1))
            x[..., self._log_whole] = np.rint(x.take(self._log_whole, axis=-1))
            index = np.minimum(np.floor(t.take(self._grid, axis=-1) * self._bins), self._bins - 1)
            x[..., self._grid] = self._grid_low + index * self._step
        for variables, coordinates in self._alike:
            x[..., variables] = point[..., coordinates].argmax(axis=-1)
        return np.clip(x, self._low, self._high, out=x)

    def encode(self, x: Array) -> Array:
        """The canonical u, (D,) or (n, D), of natural units x, (V,) or (n, V): the inverse of `decode`."""
        x = _points(x, len(self), "x")
        bad = ~((x >= self._low) & (x <= self._high)) | (self._whole & (x != np.rint(x)))
        value = x.take(self._grid, axis=-1)
        nearest = np.minimum(self._grid_low + self._index(x) * self._step, self._high[self._grid])
        bad[..., self._grid] |= np.abs(value - nearest) > 1e-6 * self._step
        if bad.any():
            at = tuple(np.argwhere(bad)[0].tolist())
            raise self._misfit(at[-1], x[at].item())
        t = x.copy()
        t[..., self._logs] = np.log(t.take(self._logs, axis=-1))
        # No width: one choice, or ends with the same rounded logarithm.
        width = np.where(self._end > self._start, self._end - self._start, 1.0)
        point = np.zeros((*x.shape[:-1], self.n_coordinates))
        point[..., self.offsets[:-1]] = np.clip((t - self._start) / width, 0.0, 1.0)
        return self._place(point, x)

    def params(self, u: Array) -> dict[str, Any]:
        """name -> Python value (float, int, or the choice itself) at u, (D,)."""
        if np.ndim(u) != 1:
            raise InputError(f"u has shape {np.shape(u)}: it must be one point, ({self.n_coordinates},)")
        values: list[Any] = self.decode(u).tolist()
        for v in np.flatnonzero(self._whole).tolist():
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
            x[v] = _number(value) if choices is None else [*choices, value].index(value)
            if math.isnan(x[v]) or x[v] > self._high[v]:
                raise self._misfit(v, value)
        return self.encode(x)

    def to_state(self) -> State:
        """The space as plain data; `Space.from_state` makes an equal one."""
        names = {} if self._names is None else {"names": list(self._names)}
        if not self._variables:
            return {"bounds": np.stack([self._low, self._high], axis=1), **names}
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

    def _index(self, x: Array) -> Array:
        index: Array = np.rint((x.take(self._grid, axis=-1) - self._grid_low) / self._step)
        return np.clip(index, 0.0, self._bins - 1)

    def _place(self, point: Array, x: Array) -> Array:
        """Move the coordinates of the discrete variables, in `point` itself, to where x has its place."""
        point[..., self.offsets[self._grid]] = (self._index(x) + 0.5) / self._bins
        start, end = self._start[self._log_whole], self._end[self._log_whole]
        logarithm = np.log(x.take(self._log_whole, axis=-1))
        point[..., self.offsets[self._log_whole]] = (logarithm - start) / (end - start)
        for variables, coordinates in self._alike:
            chosen = x.take(variables, axis=-1)[..., None]
            point[..., coordinates] = chosen == np.arange(coordinates.shape[1])
        return point

    def _misfit(self, v: int, value: object) -> InputError:
        return InputError(f"variable {self.names[v]!r}: value {short(value)} must fit {self.variables[v]}")


class _Floats(Sequence[Variable]):
    def __init__(self, low: Array, high: Array) -> None:
        self._low, self._high = low, high

    def __len__(self) -> int:
        return len(self._low)

    def __getitem__(self, at: Any) -> Any:
        low, high = self._low[at].tolist(), self._high[at].tolist()
        return tuple(map(Float, low, high)) if isinstance(at, slice) else Float(low, high)


def _variable(item: Any, name: str) -> Variable:
    """The variable that `item` describes; what is wrong with it is said with its name."""
    if isinstance(item, Float | Integer | Categorical):
        return item
    item = item.tolist() if isinstance(item, np.ndarray) else item
    try:
        kind = type(item).__name__  # Optuna need not be installed
        if kind == "CategoricalDistribution":
            return Categorical(item.choices)
        if kind in ("FloatDistribution", "IntDistribution"):
            numeric = Float if kind == "FloatDistribution" else Integer
            return numeric(item.low, item.high, item.log, item.step)
        if isinstance(item, tuple | list) and len(item) == 2:
            return Float(item[0], item[1])
        raise InputError(f"{short(item)} must be a (low, high) pair, a Float, Integer or Categorical")
    except InputError as error:
        raise InputError(f"variable {name!r}: {error}") from None


def _check_numeric(var: Float | Integer) -> None:
    low, high, bounds = _number(var.low), _number(var.high), f"bounds ({short(var.low)}, {short(var.high)})"
    if not (math.isfinite(low) and math.isfinite(high)):
        raise InputError(f"{bounds} must be two finite numbers")
    if low >= high:
        wrong = "equal" if low == high else "reversed"
        raise InputError(f"{bounds} are {wrong}: the low bound must be smaller than the high bound")
    width = high - low
    if width == math.inf:
        raise InputError(f"{bounds} are too far apart: high - low must be a finite number")
    if var.log and low <= 0:
        raise InputError(f"{bounds} do not fit log=True: the low bound must be larger than 0")
    if var.log and var.step != (1 if isinstance(var, Integer) else None):
        raise InputError(f"step {var.step!r} does not go with log=True: one of them must be left out")
    # A step of a few rounding errors would merge neighbouring grid values.
    smallest = max(width / _LARGEST / 2, 16 * math.ulp(max(abs(low), abs(high))))
    if var.step is not None and not smallest <= _number(var.step) <= width:
        raise InputError(f"step {var.step!r} must be a number from {smallest:.3g} to the width {width}")


def _number(value: object) -> float:
    """The value as a float; NaN where it is no number (a bool is none), infinite where it is too large."""
    try:
        return math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    except OverflowError:
        return math.inf


def _is_list(value: object) -> bool:
    array = isinstance(value, np.ndarray) and value.ndim > 0
    return array or (isinstance(value, Sequence) and not isinstance(value, str | bytes))


def _is_plain(choice: object) -> bool:
    if isinstance(choice, tuple):
        return all(map(_is_plain, choice))
    return choice is None or (isinstance(choice, bool | int | float | str) and choice == choice)


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
