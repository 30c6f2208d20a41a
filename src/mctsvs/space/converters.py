"""Search spaces of other libraries, and variables as plain data.

No other library is imported: what is theirs cannot be there without it, and its classes are known by their names.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from reprlib import repr as short
from typing import Any

import numpy as np

from mctsvs.space.variables import (
    KINDS,
    Boolean,
    Categorical,
    Fixed,
    Float,
    Integer,
    Ordinal,
    Variable,
    as_float,
    is_list,
    variable_of,
)
from mctsvs.utils.validation import InputError, as_vector


def items_and_names(spec: Any) -> tuple[Any, tuple[Any, ...] | None]:
    """The variables or pairs in what `Space.of` accepts, and their names; None where they have none."""
    if isinstance(spec, Mapping):
        return list(spec.values()), tuple(spec)
    kind = type(spec).__name__
    if kind == "DataFrame":
        return _items_of_frame(spec)
    if kind == "Bounds" and hasattr(spec, "lb"):
        return np.column_stack(np.broadcast_arrays(*np.atleast_1d(spec.lb, spec.ub))), None
    if not isinstance(spec, Sequence) and hasattr(spec, "__array__"):
        numbers = as_vector(spec)  # of a tensor too
        spec = np.asarray(spec) if numbers is None else numbers
    if not is_list(spec):
        raise InputError(f"{short(spec)} must be a list of (low, high) pairs or a dict of variables")
    table = isinstance(spec, np.ndarray) or (len(spec) == 2 and _is_table(spec))
    shape: tuple[int, ...] = np.shape(spec) if table else ()
    if len(shape) == 2 and shape[1] != 2:
        wrong = f"bounds of shape {shape} cannot be used: they must be (variables, 2)"
        raise InputError(f"{wrong}, so transpose them: bounds.T" if shape[0] == 2 else wrong)
    return spec, None


def _is_table(rows: Sequence[Any]) -> bool:
    """Whether they are lists of numbers, equally many in each."""
    numbers = all(is_list(row) and not any(map(math.isnan, map(as_float, row))) for row in rows)
    return numbers and len({len(row) for row in rows}) == 1


def _items_of_frame(frame: Any) -> tuple[Any, tuple[Any, ...] | None]:
    columns = list(frame.columns)
    if {"low", "high"} <= set(columns):
        names = tuple(getattr(frame, "index", ()))
        return np.column_stack([frame["low"], frame["high"]]), names if names and isinstance(names[0], str) else None
    if len(frame) != 2:
        raise InputError(
            f"a table of {len(frame)} rows with the columns {short(columns)} is no space: give the columns low and "
            f"high with a row for each variable, or two rows with a column for each variable"
        )
    return [np.asarray(frame[name]) for name in columns], tuple(map(str, columns))


def from_optuna(distributions: Mapping[str, Any]) -> dict[str, Variable]:
    """The variables of Optuna's distributions; those with one value are fixed."""
    if not isinstance(distributions, Mapping):
        raise InputError(f"{distributions!r:.60} must be a dict of name -> Optuna distribution")
    found: dict[str, Variable] = {}
    for name, distribution in distributions.items():
        if not hasattr(distribution, "single"):
            raise InputError(f"variable {name!r}: {distribution!r:.60} must be a distribution of Optuna")
        if distribution.single():
            found[name] = Fixed(distribution.choices[0] if hasattr(distribution, "choices") else distribution.low)
        else:
            found[name] = variable_of(distribution, name)
    return found


def from_configspace(space: Any) -> dict[str, Variable]:
    """The variables of a ConfigurationSpace, with their defaults and conditions."""
    if not hasattr(space, "conditions") or not hasattr(space, "forbidden_clauses"):
        raise InputError(f"{space!r:.60} must be a ConfigSpace.ConfigurationSpace")
    if space.forbidden_clauses:
        clause = space.forbidden_clauses[0]
        raise InputError(f"the forbidden clause {clause} is not supported: give it as a constraint of the optimizer")
    conditions: dict[str, list[Any]] = {}
    for condition in space.conditions:
        parts = getattr(condition, "components", [condition])
        if type(condition).__name__ == "OrConjunction":
            raise InputError(f"the condition {condition} is not supported: a variable's conditions hold all together")
        conditions.setdefault(parts[0].child.name, []).extend(parts)
    return {p.name: _variable(p, _when(conditions.get(p.name, ()))) for p in space.values()}


def _when(conditions: Iterable[Any]) -> dict[str, list[Any]]:
    """The values of each parent with which all conditions hold."""
    when: dict[str, list[Any]] = {}
    for condition in conditions:
        parent, values = condition.parent.name, _values(condition)
        when[parent] = [value for value in when.get(parent, values) if value in values]
    return when


def _variable(parameter: Any, when: dict[str, Any]) -> Variable:
    kind, name = type(parameter).__name__, parameter.name
    more = {"default": parameter.default_value, "when": when}
    if kind == "Constant":
        return Fixed(parameter.value, when=when)
    if kind == "UniformFloatHyperparameter":
        return Float(float(parameter.lower), float(parameter.upper), bool(parameter.log), **more)
    if kind == "UniformIntegerHyperparameter":
        return Integer(int(parameter.lower), int(parameter.upper), bool(parameter.log), **more)
    if kind == "OrdinalHyperparameter":
        return Ordinal(list(parameter.sequence), **more)
    if kind == "CategoricalHyperparameter":
        choices = list(parameter.choices)
        if len(choices) == 1:
            return Fixed(choices[0], when=when)
        weights = getattr(parameter, "weights", None)
        if weights is not None and len(set(weights)) > 1:
            warnings.warn(
                f"variable {name!r}: the weights {tuple(weights)} of its categories are left out, all count the same",
                stacklevel=5,
            )
        is_boolean = set(choices) == {False, True} and all(isinstance(choice, bool) for choice in choices)
        return Boolean(**more) if is_boolean else Categorical(choices, **more)
    raise InputError(f"variable {name!r}: a {kind} is not supported: it must be uniform, with a low and a high bound")


def _values(condition: Any) -> list[Any]:
    """The values of its parent with which it holds."""
    kind, parent = type(condition).__name__, condition.parent
    if kind == "EqualsCondition":
        return [condition.value]
    if kind == "InCondition":
        return list(condition.values)
    raise InputError(
        f"the condition {condition} is not supported: write it with the values that {parent.name!r} may have"
    )


def row(var: Variable) -> list[Any]:
    """The variable as a list of its kind, its own fields, and what not every variable has."""
    own = {name: nested(value, list) for name, value in vars(var).items()}
    default, when = own.pop("default"), dict(own.pop("when"))
    more = ({} if default is ... else {"default": default}) | ({"when": when} if when else {})
    return [type(var).__name__, *own.values(), *([more] if more else [])]


def variable(saved: Sequence[Any]) -> Variable:
    """The variable of a row."""
    kind, *own = saved
    more = own.pop() if own and isinstance(own[-1], dict) else {}
    var: Variable = KINDS[kind](*nested(own, tuple), **{name: nested(v, tuple) for name, v in more.items()})
    return var


def nested(value: Any, kind: type) -> Any:
    """The value with every list and tuple in it made a `kind`, and numpy's numbers Python's."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, dict):
        return {name: nested(v, kind) for name, v in value.items()}
    return kind(nested(v, kind) for v in value) if isinstance(value, list | tuple) else value
