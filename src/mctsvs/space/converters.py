"""Search spaces of other libraries: Optuna's distributions, and ConfigSpace.

Neither library is imported: a space of theirs cannot be there without it, and its classes are known by their names.

Variables as plain data.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mctsvs.space.variables import KINDS, Boolean, Categorical, Fixed, Float, Integer, Ordinal, Variable, variable_of
from mctsvs.utils.validation import InputError


def from_optuna(distributions: Mapping[str, Any]) -> dict[str, Variable]:
    """Those with one value are fixed."""
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
    """With defaults and conditions."""
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
    """Its kind, its own fields, and what not every variable has."""
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
