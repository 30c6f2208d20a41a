"""The search space: variables in their natural units on one side, the unit cube on the other.

Notation, used throughout:
  V  variables; D unit-cube coordinates (a category of c choices owns c of them, any other variable one)
  u  point of the unit cube, shape (D,) or (n, D)
  x  the same point in natural units, shape (V,) or (n, V): floats, whole floats, indices of choices
Several u stand for one x when a variable is discrete; `snap` picks the canonical one among them.
A variable that does not exist at a point, by its conditions, has its standard value there: its default or the middle.
A fixed variable has no place in u and x: only `params` has it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from reprlib import repr as short  # a bad value may be a million numbers long
from typing import Any

import numpy as np

from mctsvs.space import converters
from mctsvs.space.conditions import Conditions
from mctsvs.space.scales import Mask, Scale
from mctsvs.space.variables import Categorical, Fixed, Float, Floats, Ordinal, Variable, variable_of
from mctsvs.utils.validation import Array, Indices, InputError, State, as_number, check_text

MOST_COUNTED = 1 << 17  # combinations of the values that conditions ask for; a run does not come to the end of more


class Space:
    """The variables of a problem and their map to the unit cube. `Space.of` makes one, and it never changes.

    Attributes:
        offsets: Shape (V + 1,). Variable v owns the coordinates offsets[v]:offsets[v + 1].
        owner: Shape (D,), the variable of each coordinate.
        fixed: The variables that are never searched, by name.

    Example:
        >>> space = Space.of({"rate": (0.0, 1.0), "layers": Integer(1, 4), "kernel": Categorical(["rbf", "rq"])})
        >>> space.params(np.array([0.5, 0.3, 0.9, 0.1]))
        {'rate': 0.5, 'layers': 2, 'kernel': 'rbf'}
    """

    def __init__(
        self,
        bounds: Array,
        variables: Sequence[Variable] = (),
        names: Sequence[str] | None = None,
        fixed: Mapping[str, Fixed] | None = None,
    ):
        """`Space.of` calls this after validation.

        Args:
            bounds: Shape (V, 2).
            variables: The V variables; none when all are plain floats.
            names: The names of all variables in the order they were declared, the fixed ones among them.
            fixed: The variables that are never searched.
        """
        self.fixed = dict(fixed or {})
        if not len(bounds):
            raise InputError(f"the space has 0 variables{' to search' * bool(fixed)}: it must have at least one")
        for name in names or ():
            check_text("the name", str(name))
        self._declared, self._variables = None if names is None else tuple(names), tuple(variables)
        self._choices = {v: var.labels for v, var in enumerate(variables) if isinstance(var, Categorical)}
        sizes = np.ones(len(bounds), np.intp)
        sizes[list(self._choices)] = [len(choices) for choices in self._choices.values()]
        self.offsets = np.concatenate([[0], np.cumsum(sizes)])
        self.owner = np.repeat(np.arange(len(bounds)), sizes)
        self.offsets.flags.writeable = self.owner.flags.writeable = False
        self._scale = Scale.of(np.array(bounds.T), self._variables)
        # Categories with equally many choices share one lookup.
        alike: dict[int, list[int]] = {}
        for v, choices in self._choices.items():
            alike.setdefault(len(choices), []).append(v)
        self._alike = [(np.array(vs), self.offsets[vs][:, None] + np.arange(c)) for c, vs in alike.items()]
        self._labels = {v: _by_as_float(var) for v, var in enumerate(variables) if var.labels is not None}
        self._conditions = self._gates()

    def _gates(self) -> Conditions | None:
        if not any(var.when for var in (*self._variables, *self.fixed.values())):
            return None
        return Conditions.of({**dict(zip(self.names, self._variables, strict=True)), **self.fixed})

    @classmethod
    def of(cls, spec: object) -> Space:
        """The space that `spec` describes.

        Args:
            spec: A Space. A list of (low, high) pairs, an array of shape (V, 2) or a `scipy.optimize.Bounds`. A list of
                variables. A dict of name -> variable, pair, list of choices or Optuna distribution. A DataFrame with
                the columns low and high and a row for each variable, or with two rows and a column for each variable.

        Returns:
            The space; a Space itself is returned as it is.

        Raises:
            InputError: The bounds or names cannot be used.

        Example:
            >>> Space.of({"rate": (0.0, 1.0), "kernel": ["rbf", "linear"]})
            Space(2 variables, 3 coordinates)
        """
        if isinstance(spec, Space):
            return spec
        items, names = converters.items_and_names(spec)
        for name in names or ():
            if not isinstance(name, str):
                raise InputError(f"variable name {name!r} must be a string")
        table: Any = np.zeros(0)
        try:
            masked = isinstance(items, Sequence) and any(isinstance(item, np.ma.MaskedArray) for item in items)
            table = table if masked else np.asarray(items)  # a table would forget what is masked
        except Exception:  # ragged, so that some items are not pairs; or numbers that numpy cannot read
            pass
        if table.dtype.kind in "iuf" and table.ndim == 2 and table.shape[1] == 2:
            # The arrays find the first bad pair; the scalar check of that one pair then writes the sentence.
            table = table.astype(np.float64)
            with np.errstate(over="ignore", invalid="ignore"):
                width = table[:, 1] - table[:, 0]
            for i in np.flatnonzero(~((width > 0) & (width < np.inf)))[:1]:
                variable_of(items[i], names[i] if names else f"x{i}")
            return cls(table, (), names)
        variables = [
            variable_of(item, names[i] if names else f"x{i}", choices=names is not None) for i, item in enumerate(items)
        ]
        for i, variable in enumerate(variables):
            if names is None and (variable.when or isinstance(variable, Fixed)):
                raise InputError(f"variable {i}: {variable} needs names: give a dict of name -> variable")
        fixed = {name: v for name, v in zip(names or (), variables, strict=False) if isinstance(v, Fixed)}
        searched = [v for v in variables if not isinstance(v, Fixed)]
        ends = np.array([v.ends for v in searched], np.float64).reshape(-1, 2)
        return cls(ends, () if all(map(_is_plain_float, searched)) else searched, names, fixed)

    @classmethod
    def from_optuna(cls, distributions: Mapping[str, Any]) -> Space:
        """The space of Optuna's distributions.

        Args:
            distributions: A dict of name -> distribution, such as a trial's `distributions`.

        Raises:
            InputError: It has something else in it.

        Example:
            >>> space = Space.from_optuna(trial.distributions)
        """
        return cls.of(converters.from_optuna(distributions))

    @classmethod
    def from_configspace(cls, space: Any) -> Space:
        """The space of a `ConfigSpace.ConfigurationSpace`, with its defaults and conditions.

        Args:
            space: The ConfigurationSpace.

        Raises:
            InputError: It has a parameter, condition or forbidden clause that is not supported.

        Example:
            >>> space = Space.from_configspace(configuration_space)
        """
        return cls.of(converters.from_configspace(space))

    @cached_property
    def names(self) -> Sequence[str]:
        """The V names; x0, x1, ... where none were given."""
        if self._declared is None:
            return tuple(f"x{v}" for v in range(len(self)))
        return tuple(name for name in self._declared if name not in self.fixed) if self.fixed else self._declared

    @property
    def variables(self) -> Sequence[Variable]:
        """The V variables; those of a box are made one by one when they are asked for."""
        return self._variables or Floats(*self._scale.bounds)

    @property
    def declared(self) -> dict[str, Variable]:
        """Name -> variable, the fixed ones among them, in the order they were given."""
        searched = dict(zip(self.names, self.variables, strict=True))
        return {name: self.fixed.get(name) or searched[name] for name in self._declared or self.names}

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
        """Whether the variables have names, so that an objective takes a dict."""
        return self._declared is not None

    @property
    def bounds(self) -> Array:
        """(V, 2) the lowest and the highest value; of a category, its first and last index."""
        return self._scale.bounds.T

    @cached_property
    def sizes(self) -> Array:
        """(V,) how many values each variable has; infinite for a continuous one."""
        return self._scale.sizes

    @property
    def order(self) -> Indices:
        """(V,) the variables, each behind those that it depends on."""
        return np.arange(len(self)) if self._conditions is None else self._conditions.order

    def misfits(self, x: Array) -> Mask:
        """Which values of x, (V,) or (n, V), are out of bounds, not whole or not on their grid."""
        return self._scale.misfits(x)

    @cached_property
    def size(self) -> float:
        """How many points there are; infinite where a variable is continuous, or where they are too many to count."""
        if self._conditions is None:
            with np.errstate(over="ignore"):
                return float(np.prod(self.sizes))
        parents = self._conditions.parents
        rows = self.every(parents, most=MOST_COUNTED)
        if rows is None:
            return math.inf
        rest = self.there(rows)
        rest[:, parents] = False
        with np.errstate(over="ignore"):
            return float(np.where(rest, self.sizes, 1.0).prod(axis=1).sum())

    def every(self, among: Indices | None = None, most: float = math.inf) -> Array | None:
        """(n, V) all points in natural units, or those in which only the variables `among` are not at their standard.

        None, if they are more than `most`.
        """
        rows = self.standard[None]
        for v in self.order:
            if among is not None and v not in among:
                continue
            there = self.there(rows)[:, v]
            if len(rows) + there.sum() * (self.sizes[v] - 1.0) > most:
                return None
            copies = np.where(there, int(self.sizes[v]), 1)
            rows = np.repeat(rows, copies, axis=0)
            rows[np.repeat(there, copies), v] = np.tile(self.values(v), there.sum())
        return rows

    def values(self, v: int) -> Array:
        """All values of a variable that has finitely many, in natural units."""
        return self.nth(v, np.arange(self.sizes[v]))

    def nth(self, v: int, place: Array) -> Array:
        """The values of such a variable at these places of its order, counted from 0."""
        (low, high), values = self.bounds[v], self._scale.grid.nth(v, place)
        return np.asarray(np.minimum(low + place if values is None else values, high))

    def places(self, x: Array) -> Array:
        """The place that each value of x, (V,) or (n, V), has in its variable's order; continuous: of no meaning."""
        return self._scale.places(x)

    def at(self, places: Array) -> Array:
        """x, (V,) or (n, V), with the values at these places; NaN where there is none."""
        return self._scale.at(places)

    @cached_property
    def standard(self) -> Array:
        """(V,) the default of each variable, or the middle of its values, in natural units; the first of a category."""
        x = self._decode(np.full(self.n_coordinates, 0.5))
        for v, variable in enumerate(self._variables):
            if variable.default is not ...:
                x[v] = self._natural(v, variable.default)
        x.flags.writeable = False
        return x

    @cached_property
    def start(self) -> Array | None:
        """(D,) the standard point in the unit cube, if any variable has a default."""
        given = any(variable.default is not ... for variable in self._variables)
        return self.encode(self.standard) if given else None

    def other_value(self, v: int, value: float, reach: int, rng: np.random.Generator) -> float:
        """Another value of such a variable, at most `reach` places away; of a category, any other."""
        x = self.standard.copy()
        x[v] = value
        place, last = self.places(x)[v], self.sizes[v] - 1.0
        first, last = (0.0, last) if v in self._choices else (max(0.0, place - reach), min(last, place + reach))
        if first == last:
            return value
        other = first + rng.integers(int(last - first))
        return float(self.nth(v, other + (other >= place)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Space):
            return NotImplemented
        same = np.array_equal(self.bounds, other.bounds)
        return (
            same
            and self._variables == other._variables
            and self._declared == other._declared
            and self.fixed == other.fixed
        )

    def __repr__(self) -> str:
        return f"Space({self.n_variables} variables, {self.n_coordinates} coordinates)"

    def snap(self, u: Array) -> Array:
        """The canonical point that decodes as `u` does: middles of bins, exact one-hot; floats stay."""
        point = np.clip(_points(u, self.n_coordinates, "u"), 0.0, 1.0)
        point += 0.0  # -0.0 becomes 0.0, so that equal points have equal bytes
        return self._place(point, self.decode(point)) if self._variables else point

    def decode(self, u: Array) -> Array:
        """u, (D,) or (n, D), in natural units: (V,) or (n, V), always within the bounds."""
        x = self._decode(np.clip(_points(u, self.n_coordinates, "u"), 0.0, 1.0))
        return x if self._conditions is None else np.where(self.there(x), x, self.standard)

    def _decode(self, point: Array) -> Array:
        """As if all variables existed."""
        t = point.take(self.offsets[:-1], axis=-1) if self._choices else point
        x = self._scale.decode(t)
        for variables, coordinates in self._alike:
            x[..., variables] = point[..., coordinates].argmax(axis=-1)
        return np.clip(x, *self._scale.bounds, out=x)

    def active(self, u: Array) -> Mask:
        """Which variables exist at u, (D,) or (n, D): (V,) or (n, V); all, where none has conditions."""
        if self._conditions is None:
            return np.ones((*np.shape(u)[:-1], len(self)), np.bool_)
        return self.there(self.decode(u))

    def there(self, x: Array) -> Mask:
        """Which variables exist at x, in natural units."""
        if self._conditions is None:
            return np.ones(x.shape, np.bool_)
        return self._conditions.active(x)[..., : len(self)]

    @property
    def conditional(self) -> bool:
        """Whether there are variables that do not exist everywhere."""
        return self._conditions is not None

    def encode(self, x: Array) -> Array:
        """The canonical u, (D,) or (n, D), of natural units x, (V,) or (n, V): the inverse of `decode`."""
        x = _points(x, len(self), "x")
        bad = self.misfits(x)
        if bad.any():
            at = tuple(np.argwhere(bad)[0].tolist())
            raise self._misfit(at[-1], x[at].item())
        point = np.zeros((*x.shape[:-1], self.n_coordinates))
        point[..., self.offsets[:-1]] = self._scale.encode(x)
        return self._place(point, x)

    def params(self, u: Array) -> dict[str, Any]:
        """name -> Python value (float, int, bool, or the choice itself) at u, (D,), of the variables that exist."""
        if np.ndim(u) != 1:
            raise InputError(f"u has shape {np.shape(u)}: it must be one point, ({self.n_coordinates},)")
        return self.params_at(self.decode(u))

    def params_at(self, x: Array) -> dict[str, Any]:
        """name -> Python value at x, (V,), of the variables that exist."""
        return next(self.params_of(x[None]))

    def params_of(self, X: Array) -> Iterator[dict[str, Any]]:
        """name -> Python value at each of X, (n, V), of the variables that exist."""
        columns: list[list[Any]] = X.T.tolist()
        for v in self._wholes:
            columns[v] = list(map(int, columns[v]))
        for v, labels in self._labels.items():
            columns[v] = [labels[value] for value in columns[v]]
        there = None if self._conditions is None else self._conditions.active(X)
        for i, values in enumerate(zip(*columns, strict=True)):
            found = dict(zip(self.names, values, strict=True))
            found |= {name: fixed.value for name, fixed in self.fixed.items()}
            if there is not None:
                found = {
                    name: value for (name, value), is_there in zip(found.items(), there[i], strict=True) if is_there
                }
            yield {name: found[name] for name in self._declared or () if name in found} if self.fixed else found

    @cached_property
    def _wholes(self) -> list[int]:
        return [int(v) for v in np.flatnonzero(self._scale.whole)]

    def encode_params(self, params: Mapping[str, Any]) -> Array:
        """The canonical u, (D,), of name -> value: the inverse of `params`."""
        return self.encode(self.vector(params))

    def vector(self, params: Mapping[str, Any]) -> Array:
        """x, (V,), of name -> value: the inverse of `params_at`.

        Variables that do not exist with these values may be left out, and so may fixed ones.
        """
        if not isinstance(params, Mapping):
            raise InputError(f"{short(params)} must be a dict of name -> value")
        for name in params.keys() - set(self._declared or self.names):
            raise InputError(f"variable {name!r} is not in the space: the names must be {short(self.names)}")
        for name, fixed in self.fixed.items():
            if params.get(name, fixed.value) != fixed.value:
                raise InputError(f"variable {name!r}: value {short(params[name])} must fit {fixed}")
        x = self.standard.copy()
        for v, name in enumerate(self.names):
            if name in params:
                value = converters.nested(params[name], tuple)  # JSON has no tuples
                x[v] = self._natural(v, value)
                if math.isnan(x[v]) or x[v] > self.bounds[v, 1]:
                    raise self._misfit(v, value)
        there = self.there(x)
        for name, is_there in zip(self.names, there, strict=True):
            if is_there and name not in params:
                raise InputError(f"variable {name!r} is missing: the names must be {short(self.names)}")
        return x if self._conditions is None else np.where(there, x, self.standard)

    def _natural(self, v: int, value: Any) -> float:
        """NaN, if it is no value of the variable."""
        if v not in self._labels:
            number = as_number(value)
            return math.nan if number is None else number
        try:
            return [*self._labels[v]][[*self._labels[v].values()].index(value)]
        except Exception:  # it is none of them, or whatever comparing it raises
            return math.nan

    def to_state(self) -> State:
        """The space as plain data; `Space.from_state` makes an equal one."""
        names = {} if self._declared is None else {"names": list(self._declared)}
        if not self._variables and not self.fixed:
            return {"bounds": self.bounds.copy(), **names}
        return {"variables": [converters.row(variable) for variable in self.declared.values()], **names}

    @classmethod
    def from_state(cls, state: State) -> Space:
        """The space saved by `to_state`."""
        names, items = state.get("names"), state.get("bounds")
        if items is None:
            items = [converters.variable(row) for row in state["variables"]]
        return cls.of(items if names is None else dict(zip(names, items, strict=True)))

    def _place(self, point: Array, x: Array) -> Array:
        """Move the coordinates of discrete and absent variables, in `point` itself, to where x has its place."""
        self._place_all(point, x)
        if self._conditions is not None:
            absent = ~self.there(x)[..., self.owner]
            np.copyto(point, self._standard_unit, where=absent)
        return point

    def _place_all(self, point: Array, x: Array) -> None:
        """As if all variables existed."""
        scale, first = self._scale, self.offsets
        point[..., first[scale.grid.variables]] = scale.grid.encode(x)
        point[..., first[scale.whole_logs]] = scale.whole_log_middles(x)
        for variables, coordinates in self._alike:
            chosen = x.take(variables, axis=-1)[..., None]
            point[..., coordinates] = chosen == np.arange(coordinates.shape[1])

    @cached_property
    def _standard_unit(self) -> Array:
        point = np.zeros(self.n_coordinates)
        point[self.offsets[:-1]] = self._scale.encode(self.standard)
        self._place_all(point, self.standard)
        return point

    def _misfit(self, v: int, value: object) -> InputError:
        return InputError(f"variable {self.names[v]!r}: value {short(value)} must fit {self.variables[v]}")


def _is_plain_float(variable: Variable) -> bool:
    bare = variable.default is ... and not variable.when
    return bare and isinstance(variable, Float) and not variable.log and variable.step is None


def _by_as_float(variable: Variable) -> dict[float, Any]:
    """Natural units -> value, of a variable with labels."""
    labels = variable.labels or ()
    numbers = variable.numbers if isinstance(variable, Ordinal) else []
    return dict(zip(numbers or range(len(labels)), labels, strict=True))


def _points(points: Array, width: int, letter: str) -> Array:
    array = np.asarray(points, np.float64)
    if array.ndim not in (1, 2) or array.shape[-1] != width:
        raise InputError(f"{letter} has shape {array.shape}: it must be ({width},) or (n, {width})")
    if np.isnan(array).any():
        raise InputError(f"{letter} has nan at {np.argwhere(np.isnan(array))[0].tolist()}: it must be finite")
    return array
