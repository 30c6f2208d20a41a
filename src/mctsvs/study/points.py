"""Evaluations in and out: CSV and Parquet files, pandas, Optuna.

A table has one row per evaluation, a column for each variable in the user's units, and a column `value`, empty where
the evaluation failed. `export` adds number, source, iteration and message before them. A variable with the name of
one of these has a column called `params_NAME`, as in Optuna's tables.
"""

from __future__ import annotations

import contextlib
import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mctsvs.common import Array, InputError
from mctsvs.space import Categorical, Integer, Space, Variable
from mctsvs.trial import Trial, as_value

if TYPE_CHECKING:
    import pandas

Row = tuple[Array, float, str]
"""A point of the unit cube, its value (NaN: it failed), and a message."""

OWN = ("number", "value", "source", "iteration", "message")


def columns(space: Space) -> list[str]:
    """The column of each variable."""
    return [f"params_{name}" if name in OWN else name for name in space.names]


def records(trials: Iterable[Trial], space: Space) -> Iterator[list[Any]]:
    """One row per trial, as in the table."""
    for t in trials:
        value = None if t.value is None or t.failed else t.value
        yield [t.number, value, t.source, t.iteration, t.message, *t.params.values()]


def dataframe(trials: Sequence[Trial], space: Space) -> pandas.DataFrame:
    try:
        import pandas
    except ImportError:
        raise InputError("a table needs pandas, not installed here: pip install 'mctsvs[pandas]'") from None
    rows = list(zip(*records(trials, space), strict=True)) or [()] * (len(OWN) + len(space))
    kinds = [int, float, str, int, str, *map(_column_type, space.variables)]
    names = [*OWN, *columns(space)]
    return pandas.DataFrame(
        {name: pandas.Series(row, dtype=kind) for name, row, kind in zip(names, rows, kinds, strict=True)}
    )


def _column_type(variable: Variable) -> type:
    return object if isinstance(variable, Categorical) else int if isinstance(variable, Integer) else float


def export(path: Path, trials: Sequence[Trial], space: Space) -> None:
    kind = _kind(path)
    try:
        if kind == "parquet":
            _write_parquet(path, trials, space)
            return
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow([*OWN, *columns(space)])
            writer.writerows(records(trials, space))
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror or error}") from None


def _write_parquet(path: Path, trials: Sequence[Trial], space: Space) -> None:
    table = dataframe(trials, space)
    for column, variable in zip(columns(space), space.variables, strict=True):
        if isinstance(variable, Categorical) and len({type(choice) for choice in variable.choices}) > 1:
            table[column] = table[column].map(str)  # a Parquet column has one type
    try:
        table.to_parquet(path)
    except ImportError:
        raise InputError("Parquet files need pyarrow, not installed here: pip install 'mctsvs[pandas]'") from None


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
        return [(space.encode_params(_renamed(t, space)), t.value, t.message) for t in told]
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
            raise InputError("Parquet files need pyarrow, not installed here: pip install 'mctsvs[pandas]'") from None
        table: list[dict[str, Any]] = pyarrow.parquet.read_table(path).to_pylist()
        return table
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {error.strerror or error}") from None
    except (ValueError, csv.Error) as error:
        raise InputError(f"cannot read {str(path)!r} as {kind}: {error}") from None


def _from_table(table: Sequence[Mapping[Any, Any]], space: Space, name: str) -> list[Row]:
    if not table:
        return []
    names = columns(space)
    for column in ("value", *names):
        if column not in table[0]:
            raise InputError(f"{name} has no column {column!r}: it needs value and a column for each variable")
    found = []
    for i, row in enumerate(table, 1):
        try:
            point = {
                variable: _parsed(row[column], space, v)
                for v, (variable, column) in enumerate(zip(space.names, names, strict=True))
            }
            found.append((space.encode_params(point), _table_value(row["value"]), str(row.get("message") or "")))
        except InputError as error:
            raise InputError(f"row {i} of {name}: {error}") from None
    return found


def _table_value(value: Any) -> float:
    if isinstance(value, str):
        with contextlib.suppress(ValueError):  # `as_value` says what is wrong
            value = float(value) if value.strip() else None
    return as_value(value) + 0.0


def _parsed(value: Any, space: Space, v: int) -> Any:
    """A cell as a value of variable v: in a file choices and numbers are text, and whole numbers may be floats."""
    variable = space.variables[v]
    if isinstance(variable, Categorical):
        if isinstance(value, list):
            value = tuple(value)
        if None in variable.choices and (value is None or value == "" or value != value):  # an empty cell
            return None
        fits = [c for c in variable.choices if type(c) is type(value) and c == value]
        return (fits or [c for c in variable.choices if str(c) == str(value)] or [value])[0]
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value  # the space says what is wrong
    return value.item() if isinstance(value, np.generic) else value


def _from_optuna(study: Any, space: Space, direction: str) -> list[Row]:
    if len(study.directions) != 1:
        raise InputError(f"cannot import an Optuna study of {len(study.directions)} objectives: it must have one")
    _check_direction(study.direction.name.lower(), direction)
    found: list[Row] = []
    absent: set[str] = set()
    for trial in study.get_trials(deepcopy=False):
        finished = trial.state.name in ("COMPLETE", "FAIL")
        if finished and set(trial.params) >= set(space.names):
            value = trial.value if trial.state.name == "COMPLETE" else math.nan
            point = {name: trial.params[name] for name in space.names}
            message = "" if trial.state.name == "COMPLETE" else f"failed in Optuna trial {trial.number}"
            found.append((space.encode_params(point), as_value(value), message))
        elif finished:
            absent |= set(space.names) - set(trial.params) if trial.params else set()
    if absent and not found:
        raise InputError(f"no trial of the Optuna study has the parameter {min(absent)!r} and all others of the space")
    return found
