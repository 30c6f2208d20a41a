"""Evaluations in and out: CSV and Parquet files, pandas, Optuna.

A table has one row per evaluation, a column for each searched variable in the user's units, empty where the variable
does not exist, and a column `value`, empty where the evaluation failed. `export` adds number, source, iteration and
message before them. A variable with the name of one of these has a column called `params_NAME`, as in Optuna's tables.
Where trials have them, further columns are `constraint_NAME`, `noise` and `attr_NAME`, the latter as JSON. A further
column with the name of a variable is called `trial_...`.
"""

from __future__ import annotations

import contextlib
import csv
import difflib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mctsvs.optimizer.trial import Trial, TrialDetails
from mctsvs.space import Integer, Ordinal, Space, Variable
from mctsvs.utils.validation import Array, InputError, as_value

if TYPE_CHECKING:
    import pandas

Row = tuple[Array, float, str, TrialDetails]
"""A point of the unit cube, its value (NaN: it failed), a message, and what else was told."""

OWN = ("number", "value", "source", "iteration", "message")
NEAR = 0.85  # a name as like "value" as that is meant so: `valu` and `values`, not `volume`
STAMPS = ("asked", "told")  # columns that are moments, in seconds since 1970


def columns(space: Space) -> list[str]:
    """The column of each variable."""
    return [f"params_{name}" if name in OWN else name for name in space.names]


def _table(trials: Sequence[Trial], space: Space, *, times: bool = False) -> dict[str, tuple[Any, list[Any]]]:
    """Name -> type and cells of each column, None where a cell is empty."""
    params = [t.params for t in trials]
    table: dict[str, tuple[Any, list[Any]]] = {
        "number": (int, [t.number for t in trials]),
        "value": (float, [t.value if t.has_value else None for t in trials]),
        "source": (str, [t.source for t in trials]),
        "iteration": (int, [t.iteration for t in trials]),
        "message": (str, [t.message for t in trials]),
    }
    for column, name, variable in zip(columns(space), space.names, space.variables, strict=True):
        table[column] = _column_type(variable), [p.get(name) for p in params]

    def add(name: str, kind: Any, cells: list[Any]) -> None:
        table[f"trial_{name}" if name in table else name] = kind, cells

    for name in dict.fromkeys(name for t in trials for name in t.constraints or ()):
        measured = [(t.constraints or {}).get(name, math.nan) for t in trials]
        add(f"constraint_{name}", float, [None if math.isnan(value) else value for value in measured])
    if any(t.noise is not None for t in trials):
        add("noise", float, [t.noise for t in trials])
    for name in dict.fromkeys(name for t in trials for name in t.attrs):
        add(f"attr_{name}", object, [json.dumps(t.attrs[name]) if name in t.attrs else None for t in trials])
    if times:
        add("phase", object, [t.purpose for t in trials])
        for name in (*STAMPS, "seconds", "thinking"):
            add(name, float, [getattr(t.times, name) for t in trials])
        add("worker", object, [t.times.worker for t in trials])
    return table


def _column_type(variable: Variable) -> Any:
    whole = "Int64" if variable.when else int  # numpy's whole numbers have no empty cells
    return object if variable.labels is not None else whole if isinstance(variable, Integer) else float


def dataframe(trials: Sequence[Trial], space: Space, *, times: bool = False) -> pandas.DataFrame:
    """With `times`, also when trials were asked for and told, what they took, by whom and for what."""
    try:
        import pandas
    except ImportError:
        raise InputError("a table needs pandas, not installed here: pip install 'mctsvs[pandas]'") from None
    table = {name: pandas.Series(c, dtype=kind) for name, (kind, c) in _table(trials, space, times=times).items()}
    for name in STAMPS if times else ():
        stamp = f"trial_{name}" if name in columns(space) else name
        table[stamp] = pandas.to_datetime(table[stamp], unit="s", utc=True)
    return pandas.DataFrame(table)


def export(path: Path, trials: Sequence[Trial], space: Space) -> None:
    kind = _kind(path)
    try:
        if kind == "parquet":
            _write_parquet(path, trials, space)
            return
        table = _table(trials, space)
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(table)
            writer.writerows(zip(*(cells for _, cells in table.values()), strict=True))
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror or error}") from None


def _write_parquet(path: Path, trials: Sequence[Trial], space: Space) -> None:
    table = dataframe(trials, space)
    for column, variable in zip(columns(space), space.variables, strict=True):
        if len({type(label) for label in variable.labels or ()}) > 1:  # a Parquet column has one type
            table[column] = table[column].map(str, na_action="ignore" if variable.when else None)
    try:
        table.to_parquet(path)
    except ImportError:
        raise _no_pyarrow() from None


def _no_pyarrow() -> InputError:
    return InputError("Parquet files need pyarrow, not installed here: pip install 'mctsvs[pandas]'")


def rows(source: Any, space: Space, direction: str) -> list[Row]:
    """The evaluations in a file, a DataFrame, or a study of ours or of Optuna's."""
    if isinstance(source, str | Path):
        return _from_table(_read(Path(source)), space, f"the file {str(source)!r}")
    if hasattr(source, "to_dict") and hasattr(source, "columns"):
        return _from_table(source.to_dict("records"), space, "the table")
    if hasattr(source, "get_trials") and hasattr(source, "directions"):
        return _from_optuna(source, space, direction)
    if hasattr(source, "trials") and hasattr(source, "direction"):
        _check_direction(source.direction, direction)
        told = [t for t in source.trials if t.value is not None]
        return [(space.encode_params(_renamed(t, space)), t.value, t.message, t.details) for t in told]
    raise InputError(f"cannot import {source!r:.60}: give a CSV or Parquet file, a DataFrame, or a study")


def _renamed(trial: Trial, space: Space) -> dict[str, Any]:
    """A trial's point by the names of this space; those of a space without names fit by position."""
    if trial.space.named or space.named or len(trial.space) != len(space):
        return trial.params
    return dict(zip(space.names, trial.params.values(), strict=True))


def _check_direction(theirs: str, ours: str) -> None:
    if theirs != ours:
        raise InputError(f"cannot import a study that is to {theirs} into one to {ours}: change the sign of its values")


def _kind(path: Path) -> str:
    kind = path.suffix.lower().lstrip(".")
    if kind not in ("csv", "parquet"):
        raise InputError(f"cannot tell the kind of {str(path)!r} from its name: let it end in .csv or .parquet")
    return kind


def _read(path: Path) -> list[dict[str, Any]]:
    kind = _kind(path)
    try:
        if kind == "csv":
            with path.open(newline="", encoding="utf-8-sig") as file:
                return list(csv.DictReader(file))
        try:
            import pyarrow.parquet
        except ImportError:
            raise _no_pyarrow() from None
        table: list[dict[str, Any]] = pyarrow.parquet.read_table(path).to_pylist()
        return table
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {error.strerror or error}") from None
    except (ValueError, csv.Error) as error:
        raise InputError(f"cannot read {str(path)!r} as {kind}: {error}") from None


def first_points(path: Path, space: Space) -> list[dict[str, Any]] | None:
    """The points in a file without values, by the names of the variables; None if it has a column of values."""
    table, name = _read(path), f"the file {str(path)!r}"
    if not table:
        raise InputError(f"{name} has no points: it needs a line of names, and a row for each point")
    if "value" in table[0]:
        return None
    names = columns(space)
    _check_columns(table, names, name, "a column for each variable")
    for column in table[0]:
        if column not in (*OWN, *names) and difflib.get_close_matches(str(column).lower(), ["value"], cutoff=NEAR):
            raise InputError(f"{name} has a column {column!r}: call it 'value' if these are values, or leave it out")
    return [_point(row, space) for row in table]


def _check_columns(table: Sequence[Mapping[Any, Any]], wanted: Sequence[str], name: str, needed: str) -> None:
    for column in wanted if table else ():
        if column not in table[0]:
            raise InputError(f"{name} has no column {column!r}: it needs {needed}")


def _from_table(table: Sequence[Mapping[Any, Any]], space: Space, name: str) -> list[Row]:
    if not table:
        return []
    names = columns(space)
    _check_columns(table, ["value", *names], name, "value and a column for each variable")
    found = []
    extra = _extra_names(table[0], {*OWN, *names})
    for i, row in enumerate(table, 1):
        try:
            unit, message = space.encode_params(_point(row, space)), str(row.get("message") or "")
            found.append((unit, as_value(_number(row["value"])) + 0.0, message, _details(row, extra)))
        except InputError as error:
            raise InputError(f"row {i} of {name}: {error}") from None
    return found


def _point(row: Mapping[Any, Any], space: Space) -> dict[str, Any]:
    """The values of a row by the names of the variables that exist there."""
    return {
        variable: _parsed(row[column], space, v)
        for v, (variable, column) in enumerate(zip(space.names, columns(space), strict=True))
        if not (space.conditional and _is_empty(row[column]) and space.variables[v].when)
    }


def _extra_names(columns: Iterable[Any], taken: set[str]) -> dict[str, str]:
    """Columns of what was told beside values -> their names without the prefix for those that are taken."""
    plain = {c: c.removeprefix("trial_") for c in columns if isinstance(c, str) and c not in taken}
    kinds = ("constraint_", "attr_")
    return {column: name for column, name in plain.items() if name == "noise" or name.startswith(kinds)}


def _details(row: Mapping[Any, Any], extra: Mapping[str, str]) -> TrialDetails:
    constraints, attrs, noise = {}, {}, None
    for column, name in extra.items():
        cell = row[column]
        if name.startswith("constraint_"):
            constraints[name.removeprefix("constraint_")] = _number(cell)
        elif name == "noise":
            noise = _number(cell)
        elif isinstance(cell, str) and cell:
            attrs[name.removeprefix("attr_")] = cell
            with contextlib.suppress(ValueError):  # a text that is not JSON is a text
                attrs[name.removeprefix("attr_")] = json.loads(cell)
    known = any(c is not None for c in constraints.values())
    return TrialDetails.of(constraints if known else None, noise, attrs)


def _number(cell: Any) -> Any:
    """A cell with the text of a number as that number, None for an empty one; its reader says what is wrong."""
    if _is_empty(cell):
        return None
    if isinstance(cell, str):
        with contextlib.suppress(ValueError):
            return float(cell) if cell.strip() else None
    return cell


def _parsed(value: Any, space: Space, v: int) -> Any:
    """A cell as a value of variable v: in a file choices and numbers are text, and whole numbers may be floats."""
    variable = space.variables[v]
    labels = variable.labels
    if labels is not None:
        if isinstance(value, list):
            value = tuple(value)
        if None in labels and _is_empty(value):
            return None
        fits = [c for c in labels if type(c) is type(value) and c == value]
        fits = fits or [c for c in labels if str(c) == str(value)]
        if fits or not isinstance(variable, Ordinal):
            return (fits or [value])[0]
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value  # the space says what is wrong
    return value.item() if isinstance(value, np.generic) else value


def _is_whole(space: Space, params: Mapping[str, Any]) -> bool:
    """Whether only variables are missing that do not exist with these values."""
    with contextlib.suppress(InputError):
        space.vector({name: params[name] for name in space.names if name in params})
        return True
    return False


def _is_empty(value: Any) -> bool:
    return value is None or str(value) in ("", "nan", "<NA>")


def _from_optuna(study: Any, space: Space, direction: str) -> list[Row]:
    if len(study.directions) != 1:
        raise InputError(f"cannot import an Optuna study of {len(study.directions)} objectives: it must have one")
    _check_direction(study.direction.name.lower(), direction)
    found: list[Row] = []
    absent: set[str] = set()
    for trial in study.get_trials(deepcopy=False):
        finished = trial.state.name in ("COMPLETE", "FAIL")
        missing = set(space.names) - set(trial.params)
        if finished and (not missing or _is_whole(space, trial.params)):
            value = trial.value if trial.state.name == "COMPLETE" else math.nan
            point = {name: trial.params[name] for name in space.names if name in trial.params}
            message = "" if trial.state.name == "COMPLETE" else f"failed in Optuna trial {trial.number}"
            measured = trial.system_attrs.get("constraints")
            constraints = None if measured is None else {f"constraint{i}": c for i, c in enumerate(measured)}
            found.append((space.encode_params(point), as_value(value), message, TrialDetails.of(constraints)))
        elif finished:
            absent |= missing if trial.params else set()
    if absent and not found:
        raise InputError(f"no trial of the Optuna study has the parameter {min(absent)!r} and all others of the space")
    return found
