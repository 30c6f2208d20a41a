"""Evaluations in and out: CSV and Parquet files, pandas, Optuna.

A table has one row per evaluation, a column for each searched variable in the user's units, empty where the variable
does not exist, and a column `value`, empty where the evaluation failed. `export` adds number, source, iteration and
message before them. A variable with the name of one of these has a column called `params_NAME`, as in Optuna's tables.
Where trials have them, further columns are `constraint_NAME`, `noise` and `attr_NAME`, the latter as JSON. A further
column with the name of a variable is called `trial_...`.

What is read is what was written. So a text stands in quotes, as JSON, where it could be taken for something else: the
choice "1" beside the choice 1, a text that begins with a quote, and one that a spreadsheet would take for a formula.
"""

from __future__ import annotations

import contextlib
import csv
import difflib
import json
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mctsvs.optimizer.objectives import Objectives
from mctsvs.optimizer.trial import Trial, TrialDetails
from mctsvs.optimizer.unit_cube import encode
from mctsvs.space import Integer, Region, Space, Variable
from mctsvs.space.converters import nested
from mctsvs.utils.validation import Array, InputError, as_value
from mctsvs.utils.written import written

if TYPE_CHECKING:
    import pandas

Row = tuple[Array, float, str, TrialDetails]
"""A point of the unit cube, its value (NaN: it failed), a message, and what else was told."""

OWN = ("number", "value", "source", "iteration", "message")
NEAR = 0.85  # a name as like "value" as that is meant so: `valu` and `values`, not `volume`
STAMPS = ("asked", "told")  # columns that are moments, in seconds since 1970
EMPTY = {"", "nan", "NaN", "None", "NaT", "<NA>"}
FORMULA = re.compile(r"[=@\t\r]|[+-](?![\w.+-]*\Z)")  # to a spreadsheet; not a number or a word such as -O2
NEARBY, HALVINGS = 1e-12, 60  # where a point is looked for whose values are exactly those of the table
ABSENT = object()  # the value of an empty cell


# names of columns, and cells


def columns(space: Space) -> dict[str, str]:
    """The column of each variable, by its name."""
    taken = {*OWN, *space.names}
    return {name: _free("params_", name, taken) if name in OWN else name for name in space.names}


def _free(prefix: str, name: str, taken: Collection[Any]) -> str:
    """The name, with the prefix as often as it needs to be one of its own."""
    while name in taken:
        name = prefix + name
    return name


def _quoted(text: str) -> str:
    """A text as it stands in a cell."""
    return _json(text) if text.startswith('"') or FORMULA.match(text) else text


def _unquoted(cell: str) -> str:
    """The text of a cell; quotes around what is no JSON belong to it."""
    with contextlib.suppress(ValueError):
        return str(json.loads(cell)) if cell.startswith('"') else cell
    return cell


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _cells(variable: Variable) -> dict[Any, Any]:
    """Choice -> its cell, which no other choice has."""
    labels = variable.labels or ()
    others = {str(label) for label in labels if not isinstance(label, str)}
    plain = {label: _quoted(label) if isinstance(label, str) else label for label in labels}
    return {label: _json(label) if cell in others else cell for label, cell in plain.items()}


def _kind_of(variable: Variable) -> Any:
    """The type of all its values where they have one; numpy's whole numbers have no empty cells."""
    if variable.labels is None:
        return ("Int64" if variable.when else int) if isinstance(variable, Integer) else float
    return object


# out


def _table(
    trials: Sequence[Trial], space: Space, *, times: bool = False, objectives: Objectives | None = None
) -> dict[str, tuple[Any, list[Any]]]:
    """Name -> type and cells of each column, None where a cell is empty; several objectives have one each."""
    params = [t.params for t in trials]
    values: dict[str, list[Any]] = {"value": [t.value if t.has_value else None for t in trials]}
    if objectives is not None:
        rows = [t.values or (None,) * len(objectives) for t in trials]
        values = {f"objective_{name}": [row[k] for row in rows] for k, name in enumerate(objectives.names)}
    table: dict[str, tuple[Any, list[Any]]] = {
        "number": (int, [t.number for t in trials]),
        **{name: (float, column) for name, column in values.items()},
        "source": (str, [t.source for t in trials]),
        "iteration": (int, [t.iteration for t in trials]),
        "message": (str, [t.message for t in trials]),
    }
    for (name, column), variable in zip(columns(space).items(), space.variables, strict=True):
        cells = _cells(variable)
        table[column] = _kind_of(variable), [cells.get(p.get(name), p.get(name)) for p in params]

    def add(name: str, kind: Any, cells: list[Any]) -> None:
        table[_free("trial_", name, table)] = kind, cells

    for name in dict.fromkeys(name for t in trials for name in t.constraints or ()):
        add(f"constraint_{name}", float, [(t.constraints or {}).get(name) for t in trials])
    if any(t.noise is not None for t in trials):
        add("noise", float, [t.noise for t in trials])
    for name in dict.fromkeys(name for t in trials for name in t.attrs):
        add(f"attr_{name}", object, [_json(t.attrs[name]) if name in t.attrs else None for t in trials])
    if times:
        add("phase", object, [t.purpose for t in trials])
        for name in (*STAMPS, "seconds", "thinking"):
            add(name, float, [getattr(t.times, name) for t in trials])
        add("worker", object, [t.times.worker for t in trials])
    return table


def dataframe(
    trials: Sequence[Trial], space: Space, *, times: bool = False, objectives: Objectives | None = None
) -> pandas.DataFrame:
    """With `times`, also when trials were asked for and told, what they took, by whom and for what."""
    try:
        import pandas
    except ImportError:
        raise InputError("a table needs pandas, not installed here: pip install 'mctsvs[pandas]'") from None
    columns_ = _table(trials, space, times=times, objectives=objectives)
    table = {name: pandas.Series(c, dtype=kind) for name, (kind, c) in columns_.items()}
    for name in STAMPS if times else ():
        stamp = _free("trial_", name, {*OWN, *columns(space).values()})
        table[stamp] = pandas.to_datetime(table[stamp], unit="s", utc=True)
    return pandas.DataFrame(table)


def _column(variable: Variable, cells: Sequence[tuple[bool, Any]]) -> tuple[Any, list[Any]]:
    """Choices as a file has them, numbers or texts; empty where the variable does not exist."""
    kinds = {type(label) for label in variable.labels or ()}
    numbers = kinds in ({bool}, {int}, {float}) and max(map(abs, variable.labels or ())) < 2**63  # as Parquet has them
    kind = kinds.pop() if numbers else str
    return kind, [kind(cell) if there else None for there, cell in cells]


def export(path: Path, trials: Sequence[Trial], space: Space, objectives: Objectives | None = None) -> int:
    """Write the trials that were told; how many they are."""
    kind = _kind(path)
    told = [trial for trial in trials if trial.value is not None]
    table = _table(told, space, objectives=objectives)
    for (name, column), variable in zip(columns(space).items(), space.variables, strict=True):
        if variable.labels is not None:
            table[column] = _column(
                variable, [(name in t.params, c) for t, c in zip(told, table[column][1], strict=True)]
            )
    with written(path):
        if kind == "parquet":
            _write_parquet(path, table)
        else:
            table["message"] = str, [_quoted(t.message) for t in told]
            with path.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(_quoted(name) or '""' for name in table)
                writer.writerows(zip(*(cells for _, cells in table.values()), strict=True))
    return len(told)


def _write_parquet(path: Path, table: Mapping[str, tuple[Any, list[Any]]]) -> None:
    pyarrow = _pyarrow()
    types = {int: "int64", "Int64": "int64", float: "float64", bool: "bool", str: "string", object: "string"}
    arrays = {name: pyarrow.array(cells, types[kind]) for name, (kind, cells) in table.items()}
    pyarrow.parquet.write_table(pyarrow.table(arrays), path)


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise InputError("Parquet files need pyarrow, not installed here: pip install 'mctsvs[pandas]'") from None
    return pyarrow


# in


def rows(source: Any, region: Region, direction: str) -> list[Row]:
    """The evaluations in a file, a DataFrame, or a study of ours or of Optuna's; their points are in the region."""
    space = region.space
    if is_table(source):
        return _from_table(_read(source), region)
    if hasattr(source, "get_trials") and hasattr(source, "directions"):
        found = _from_optuna(source, space, direction)
    elif hasattr(source, "trials") and hasattr(source, "direction"):
        _check_direction(source.direction, direction)
        same = source.space == space
        told = [t for t in source.trials if t.value is not None]
        units = [t.unit if same else space.encode_params(_renamed(t, space)) for t in told]
        found = [(unit, t.value, t.message, t.details) for unit, t in zip(units, told, strict=True)]
    else:
        raise InputError(f"cannot import {source!r:.60}: give a CSV or Parquet file, a DataFrame, or a study")
    for i, (unit, *_) in enumerate(found, 1):
        with _place(f"evaluation {i} of the source"):
            region.check(unit)
    return found


def is_table(source: Any) -> bool:
    """Whether it is a file, or a DataFrame."""
    return isinstance(source, str | os.PathLike) or (hasattr(source, "to_dict") and hasattr(source, "columns"))


@contextlib.contextmanager
def _place(name: str) -> Iterator[None]:
    """What is wrong is said with its place."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _renamed(trial: Trial, space: Space) -> dict[str, Any]:
    """A trial's point by the names of this space; those of a space without names fit by position."""
    if trial.space.named or space.named or len(trial.space) != len(space):
        return trial.params
    return dict(zip(space.names, trial.params.values(), strict=True))


def _check_direction(theirs: str, ours: str) -> None:
    if theirs != ours:
        raise InputError(f"cannot import a study that is to {theirs} into one to {ours}: change the sign of its values")


@dataclass(frozen=True)
class Table:
    """Rows of cells by the names of their columns, and what the table is called in errors."""

    name: str
    columns: Sequence[Any]
    rows: Sequence[Mapping[Any, Any]]
    native: bool = False
    """Whether the cells are Python's values, in place of the texts of a file."""

    def check(self, wanted: Collection[str], needed: str) -> None:
        there = set(self.columns)
        for column in wanted:
            if column not in there:
                raise InputError(f"{self.name} has no column {column!r}: it needs {needed}")


def _kind(path: Path) -> str:
    kind = path.suffix.lower().lstrip(".")
    if kind not in ("csv", "parquet"):
        raise InputError(f"cannot tell the kind of {str(path)!r} from its name: let it end in .csv or .parquet")
    return kind


def _read(source: Any) -> Table:
    if not isinstance(source, str | os.PathLike):
        names = _distinct("the table", list(source.columns))
        return Table("the table", names, source.to_dict("records"), native=True)
    path, name = Path(source), f"the file {str(source)!r}"
    kind = _kind(path)
    try:
        if kind == "csv":
            return _read_csv(path, name)
        table = _pyarrow().parquet.read_table(path)
        return Table(name, _distinct(name, table.column_names), table.to_pylist())
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {error.strerror or error}") from None
    except (ValueError, csv.Error) as error:
        raise InputError(f"cannot read {str(path)!r} as {kind}: {error}") from None


def _distinct(name: str, columns: list[Any]) -> list[Any]:
    for column, times in Counter(columns).items():
        if column != "" and times > 1:
            raise InputError(f"{name} has the column {column!r} twice: give each a name of its own")
    return columns


def _read_csv(path: Path, name: str) -> Table:
    limit = csv.field_size_limit(sys.maxsize)  # a note may be long
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = [line for line in csv.reader(file) if line]
    finally:
        csv.field_size_limit(limit)
    header = lines[0] if lines else []
    while header and not header[-1]:  # spreadsheets write empty columns at the end
        header.pop()
    header = _distinct(name, [_unquoted(cell) for cell in header])
    for i, line in enumerate(lines[1:], 1):
        cells = len(line) if any(line[len(header) :]) else min(len(line), len(header))
        if cells != len(header):
            raise InputError(
                f"row {i} of {name} has {cells} cells, and there are {len(header)} columns: separate cells by commas, "
                f"and write decimals with a point"
            )
    found = [dict(zip(header, line, strict=False)) for line in lines[1:]]
    for row in found:
        row["message"] = _unquoted(row.get("message", ""))
    return Table(name, header, found)


def first_points(source: Any, region: Region) -> list[dict[str, Any]] | None:
    """The points in a table without values, by the names of the variables; None if it has a column of values."""
    table = _read(source)
    if not table.rows:
        raise InputError(f"{table.name} has no points: it needs a line of names, and a row for each point")
    if "value" in table.columns:
        return None
    names = columns(region.space).values()
    table.check(names, "a column for each variable")
    for column in table.columns:
        if column not in (*OWN, *names) and difflib.get_close_matches(str(column).lower(), ["value"], cutoff=NEAR):
            raise InputError(
                f"{table.name} has a column {column!r}: call it 'value' if these are values, or leave it out"
            )
    points = []
    point_of = _point_reader(table, region.space)
    for i, row in enumerate(table.rows, 1):
        with _place(f"row {i} of {table.name}"):
            points.append(point_of(row))
            encode(region, points[-1])
    return points


def _from_table(table: Table, region: Region) -> list[Row]:
    names = columns(region.space).values()
    if table.rows:
        table.check(["value", *names], "value and a column for each variable")
    found = []
    taken = {*OWN, *names}
    extra = _extra_names(table.columns, taken)
    asked, told = (_free("trial_", name, taken) for name in STAMPS)
    point_of = _point_reader(table, region.space)
    vectors = []
    for i, row in enumerate(table.rows, 1):
        if _is_empty(row["value"]) and _is_empty(row.get(told)) and not _is_empty(row.get(asked)):
            continue  # a trial of `dataframe` that waits for its value
        with _place(f"row {i} of {table.name}"):
            vectors.append(region.space.vector(point_of(row)))
            said = row.get("message")
            message = said if isinstance(said, str) else "" if _is_empty(said) else str(said)
            found.append((i, as_value(_number(row["value"])), message, _details(row, extra)))
    units = _encoded(region.space, np.array(vectors).reshape(-1, len(region.space)))
    for unit, (i, *_) in zip(units, found, strict=True):
        with _place(f"row {i} of {table.name}"):
            region.check(unit)
    return [(unit, *more) for unit, (_, *more) in zip(units, found, strict=True)]


def _encoded(space: Space, x: Array) -> Array:
    """(n, D) points of the unit cube that decode as x, (n, V), to the last bit: `encode` may round."""
    u, first = space.encode(x), space.offsets[:-1]
    off = np.flatnonzero((space.decode(u) != x).any(axis=1))
    low, high = np.maximum(u[off] - NEARBY, 0.0), np.minimum(u[off] + NEARBY, 1.0)
    wrong = np.zeros(low.shape, np.bool_)
    wrong[:, first] = space.decode(u[off]) != x[off]
    for _ in range(HALVINGS):
        middle = np.where(wrong, (low + high) / 2.0, u[off])
        below = np.zeros(wrong.shape, np.bool_)
        below[:, first] = space.decode(middle) < x[off]
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    better = np.zeros(wrong.shape, np.bool_)
    better[:, first] = space.decode(np.where(wrong, high, u[off])) == x[off]
    u[off] = np.where(wrong & better, high, u[off])
    return u


def _point_reader(table: Table, space: Space) -> Callable[[Mapping[Any, Any]], dict[str, Any]]:
    """From a row to the values by the names of the variables; fixed ones may be there."""
    fixed = {name: name for name in space.fixed if name in table.columns and name not in OWN}
    wanted = {**columns(space), **fixed}
    declared = space.declared
    readers = {name: _reader(declared[name], table.native) for name in wanted}

    def point(row: Mapping[Any, Any]) -> dict[str, Any]:
        values = {name: readers[name](row[column]) for name, column in wanted.items()}
        for name, value in values.items():
            if value is ABSENT and not declared[name].when:
                raise InputError(f"the cell of {name!r} is empty")
        return {name: value for name, value in values.items() if value is not ABSENT}

    return point


def _reader(variable: Variable, native: bool) -> Callable[[Any], Any]:
    """From a cell to a value of the variable: in a file choices and numbers are text, and whole numbers may be floats.

    An empty cell is a choice that has no other text, or a variable that does not exist; the other variables say which.
    """
    labels = variable.labels or ()
    texts = {str(cell): label for label, cell in _cells(variable).items()}
    also = {text: label for label in labels for text in (str(label), _json(label))} | {_json(s): s for s in labels}
    blank = [label for label in labels if label is None or label in EMPTY]

    def value(cell: Any) -> Any:
        cell = nested(cell, tuple)
        text = cell if isinstance(cell, str) else None
        if text in texts:
            if native and text in labels and texts[text] != text:
                raise InputError(
                    f"{text!r} may be the choice {texts[text]!r} or the text {text!r}: write {_json(text)}"
                )
            return texts[text]
        for label in labels:
            if type(label) is type(cell) and label == cell:
                return label
        if _is_empty(cell):
            if None in blank and (text is not None or cell is None):
                return None
            return blank[0] if text is None and len(blank) == 1 else ABSENT
        return also[text] if text in also else _number(cell)

    return value


def _extra_names(columns: Sequence[Any], taken: Collection[str]) -> dict[str, str]:
    """Columns of what was told beside values -> their names without the prefix for those that are taken."""
    found = {}
    for column in columns:
        name = re.sub(r"^(trial_)*", "", column) if isinstance(column, str) else ""
        if (name == "noise" or name.startswith(("constraint_", "attr_"))) and _free("trial_", name, taken) == column:
            found[column] = name
    return found


def _details(row: Mapping[Any, Any], extra: Mapping[str, str]) -> TrialDetails:
    constraints, attrs, noise = {}, {}, None
    for column, name in extra.items():
        cell = row[column]
        if name.startswith("constraint_") and (not _is_empty(cell) or str(cell) == "nan"):  # told, and not known
            constraints[name.removeprefix("constraint_")] = _number(cell)
        elif name == "noise":
            noise = None if _is_empty(cell) else _number(cell)
        elif name.startswith("attr_") and (cell != "" if isinstance(cell, str) else not _is_empty(cell)):
            attrs[name.removeprefix("attr_")] = nested(cell, list)
            with contextlib.suppress(ValueError, TypeError):  # a text that is not JSON is a text
                attrs[name.removeprefix("attr_")] = json.loads(cell)
    return TrialDetails.of(constraints or None, noise, attrs)


def _number(cell: Any) -> Any:
    """A cell with the text of a number as that number, None for an empty one; its reader says what is wrong."""
    if not isinstance(cell, str):
        return None if _is_empty(cell) else nested(cell, tuple)
    with contextlib.suppress(ValueError):
        return float(cell) if "_" not in cell and cell.strip() else cell.strip() or None
    return cell


def _is_whole(space: Space, params: Mapping[str, Any]) -> bool:
    """Whether only variables are missing that do not exist with these values."""
    with contextlib.suppress(InputError):
        space.vector({name: params[name] for name in space.names if name in params})
        return True
    return False


def _is_empty(cell: Any) -> bool:
    return cell is None or str(cell).strip() in EMPTY


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
