"""A program as the objective: it gets the variables as arguments and prints the value.

The command is split into pieces once, as a shell would, and `{name}` is then replaced inside each piece. The pieces
go to the program as they are, without a shell, so that no value can become a command or a further argument. The one
exception is a piece that is a group and nothing else: `{x}` of a group of 200 becomes 200 arguments. A piece with a
variable that does not exist at a point is left out, and with it an option such as `--slope` right in front of it.

The value is the last number on standard output, or the last that follows its name. A non-zero exit status, a time-out,
no such number, or `nan` and `inf` are failed evaluations. `numbers` says what a number is: it stands alone.

A measured constraint is the last number that follows its name, as in `stress = -0.3` or `"stress": 1e-2`; such numbers
are not the value. One that is not printed, or is no finite number, is not known; the value may be missing beside one
that is.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import selectors
import shlex
import shutil
import signal
import string
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mctsvs.objectives.space_file import SpaceFile
from mctsvs.utils.formatting import listed
from mctsvs.utils.validation import Array, EvaluationFailed, InputError

APART = r"\s=()\[\]{}<>|\"'`*;\ufeff"  # what may be on both sides of a number, beside comma and colon
JOINS = ",:'*"  # of them, what between two digits makes one thing of them
NUMBER = re.compile(
    rf"(?<![^{APART},:])[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|nan|inf(?:inity)?)"
    rf"(?=[.!?]*(?:[{APART},:]|\Z))(?![{JOINS}][+-]?\.?\d)",
    re.IGNORECASE,
)
JOINED = re.compile(rf"(?<![^{APART},:])[+-]?\.?\d[^{APART},:]*[{JOINS}]\Z")
BETWEEN = r"[\"'`]?[ \t]*[:=]?[ \t]*[\"'`]?"  # a name and its number
NAMED = re.compile(rf"(?<![\w.-])([^\W\d][\w.-]*){BETWEEN}")
NEAR = 100  # characters before a number that are looked at
MOST_NAMES = 100  # that are kept
LONGEST = 200  # characters of a program's own message that are kept
TAIL = 1 << 20  # bytes of a program's output that are kept: its end
OPTION = re.compile(r"-[^={}]+")
FIELD = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True)
class UserProgram:
    """A program with the pieces of its command.

    >>> UserProgram.parse("./simulate --a {a} --b {b:.3f}", file)(x)
    """

    pieces: tuple[str, ...]
    file: SpaceFile
    timeout: float | None = None
    constraints: tuple[str, ...] = ()  # names
    value: str | None = None  # the name of the value, where it is not the last number
    printed: dict[str, None] = field(default_factory=dict, compare=False, repr=False)
    """Names before numbers in outputs that this process has read and that had not all that was wanted."""

    @classmethod
    def parse(
        cls,
        template: str,
        file: SpaceFile,
        timeout: float | None = None,
        constraints: Sequence[str] = (),
        value: str | None = None,
    ) -> UserProgram:
        """The command of that text, checked: the program is there, and names and variables belong together."""
        if timeout is not None and not (math.isfinite(timeout) and timeout > 0):
            raise InputError(f"a time-out of {timeout!r} seconds is not possible: give a number larger than 0")
        try:
            pieces = tuple(shlex.split(template))
        except ValueError as error:
            raise InputError(f"the command {template!r} cannot be split: {str(error).lower()}") from None
        syntax = shell_syntax(template)
        if syntax:
            raise InputError(
                f"{syntax} in the command is for a shell, and none reads it: put it in quotes if the program is to get "
                f"it, or start a shell that gets the values as arguments, as in "
                f"sh -c './simulate \"$@\" | tail -1' sh {{a}} {{b}}"
            )
        if not pieces:
            raise InputError("the command is empty: write a program and its arguments, such as './simulate --a {a}'")
        for word, name in (*(("a constraint", name) for name in constraints), ("the value", value)):
            if name is not None and not name.strip():
                raise InputError(f"{word} needs a name, the word that the program prints before its number")
        if value in constraints:
            raise InputError(f"{value!r} is the value and a constraint: it can be only one of them")
        command = cls(pieces, file, timeout, tuple(dict.fromkeys(constraints)), value)
        command._check()
        return command

    def _check(self) -> None:
        used = {name for piece in self.pieces for name in _names(piece)}
        known = {*self.file.variables, *self.file.groups}
        for name in sorted(used - known):
            there = listed([repr(name) for name in (*self.file.groups, *self._single())], 5)
            raise InputError(
                f"{{{name}}} in the command is no variable: the space has {there} (write {{{{ and }}}} for braces)"
            )
        if _names(self.pieces[0]):
            raise InputError(f"the program {self.pieces[0]!r} must not depend on a variable: use it in an argument")
        covered = used | {member for name in used & {*self.file.groups} for member in self.file.groups[name]}
        missing = [name for name in self.file.variables if name not in covered]
        if missing:
            unused = listed([repr(name) for name in missing], 5)
            raise InputError(
                f"the command never uses {unused}: write {{{missing[0]}}} where the value belongs, "
                "or take the variable out of the space"
            )
        self._check_arguments()
        program = self.pieces[0].format()
        if shutil.which(program) is None:
            wrong = "is not executable" if os.path.isfile(program) else "is not there"
            raise InputError(f"cannot run {program!r}: the program {wrong}")

    def _check_arguments(self) -> None:
        """What cannot be written is said now, not in the middle of a run: each choice is tried once."""
        space, x = self.file.space, self.file.bounds[:, 0].copy()
        tables = {v: space.values(v) for v, variable in enumerate(space.variables) if variable.labels is not None}
        for choice in range(max(map(len, tables.values()), default=1)):
            x[list(tables)] = [values[min(choice, len(values) - 1)] for values in tables.values()]
            for argument in self.arguments(x):
                if "\0" in argument:
                    raise InputError(f"{argument!r} cannot be an argument of a program: it has a null character")

    def _single(self) -> list[str]:
        members = {member for group in self.file.groups.values() for member in group}
        return [name for name in self.file.variables if name not in members]

    def arguments(self, x: Array) -> list[str]:
        """Program and arguments at a point in natural units."""
        params: dict[str, Any] = self.file.params(x)
        arguments: list[str] = []
        for before, piece in zip(("", *self.pieces), self.pieces, strict=False):
            names = _names(piece)
            if any(self._is_absent(name, params) for name in names):
                if OPTION.fullmatch(before):
                    arguments.pop()
                continue
            if len(names) == 1 and names[0] in self.file.groups and _is_one_field(piece):
                arguments += [
                    _fill(piece.replace(names[0], member, 1), params) for member in self.file.groups[names[0]]
                ]
                continue
            together = {
                name: [params[member] for member in self.file.groups[name]]
                for name in names
                if name in self.file.groups
            }
            arguments.append(_fill(piece, {**params, **together}))
        return arguments

    def _is_absent(self, name: str, params: dict[str, Any]) -> bool:
        """A group's variables exist together."""
        return self.file.groups.get(name, (name,))[0] not in params

    def __call__(self, x: Array) -> Any:
        try:
            output = _output(self.arguments(x), self.timeout)
        except OSError as error:
            raise EvaluationFailed(f"cannot run {self.pieces[0]!r}: {error.strerror}") from error
        value, found = read_output(output, self.constraints, self.value)
        missing = (self.value is not None and value is None) or any(map(math.isnan, found.values()))
        if missing and len(self.printed) < MOST_NAMES:
            self.printed.update(dict.fromkeys(names_before_numbers(output)))
        if value is not None and math.isfinite(float(value)):
            return (float(value), found) if found else float(value)
        if not all(map(math.isnan, found.values())):
            return None, found
        what = "its last number" if self.value is None else self.value
        if value is not None:
            raise EvaluationFailed(f"printed {value:.{LONGEST}} as {what}")
        if self.value is not None:
            raise EvaluationFailed(f"printed no number after {self.value!r}{_last_line(output)}")
        alone = " that stands alone" if re.search(r"\d", _last_line(output)) else ""
        raise EvaluationFailed(f"printed no number{alone}{_last_line(output)}")


def shell_syntax(template: str) -> str:
    """The first thing in it, outside of quotes, that a shell would take for a pipe, a redirection or the like."""
    quote, text = "", FIELD.sub("value", template)
    skip = False
    for at, character in enumerate(text):
        if skip:
            skip = False
        elif character == "\\" and quote != "'":
            skip = True
        elif character in "'\"" and quote in ("", character):
            quote = "" if quote else character
        elif quote != "'" and (character == "`" or text.startswith("$(", at)):
            return "a backtick" if character == "`" else "$("
        elif not quote and character in "|&;<>":
            return character * (1 + text.startswith(character, at + 1))
    return ""


def _fields(piece: str) -> list[tuple[str, str | None, str | None, str | None]]:
    try:
        return list(string.Formatter().parse(piece))
    except ValueError:
        raise InputError(
            f"{piece!r} in the command has unpaired braces: write {{name}} for a variable, {{{{ or }}}} for a brace"
        ) from None


def _names(piece: str) -> list[str]:
    return [name for _, name, _, _ in _fields(piece) if name is not None]


def _is_one_field(piece: str) -> bool:
    return [text for text, _, _, _ in _fields(piece)] == [""]


def _fill(piece: str, params: dict[str, Any]) -> str:
    filled = []
    for text, name, form, conversion in _fields(piece):
        filled.append(text)
        if name is not None:
            if conversion:
                raise InputError(f"{piece!r} in the command has !{conversion}: write {{name}} or {{name:.3f}}")
            value = params[name]
            filled.append(",".join(_text(v, form or "") for v in (value if isinstance(value, list) else [value])))
    return "".join(filled)


def _text(value: Any, form: str) -> str:
    """A value as an argument; true and false as TOML writes them."""
    if isinstance(value, bool) and not form:
        return "true" if value else "false"
    try:
        return format(value, form)
    except ValueError:
        raise InputError(f"{value!r} cannot be written as {{:{form}}}: use a form such as {{name:.3f}}") from None


def _output(arguments: list[str], timeout: float | None) -> str:
    """The end of what the program prints; it and what it started are ended on a time-out or an interrupt."""
    last = math.inf if timeout is None else time.monotonic() + timeout
    with subprocess.Popen(
        arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        try:
            output, errors = _ends(process, last)
            process.wait(None if timeout is None else max(0.0, last - time.monotonic()))
        except subprocess.TimeoutExpired:
            _end(process)
            raise EvaluationFailed(f"stopped after {timeout:g} seconds") from None
        except BaseException:
            _end(process)
            raise
    if process.returncode != 0:
        raise EvaluationFailed(f"{_status(process.returncode)}{_last_line(errors)}")
    return output


def _ends(process: subprocess.Popen[bytes], last: float) -> tuple[str, str]:
    """The ends of what it writes to its two outputs, read until it closes them; no later than `last`."""
    if os.name != "posix":
        left = None if last == math.inf else max(0.0, last - time.monotonic())
        return tuple(_text_of(bytearray(whole)) for whole in process.communicate(timeout=left))  # type: ignore[return-value]
    assert process.stdout is not None
    assert process.stderr is not None
    ends = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    with selectors.DefaultSelector() as selector:
        for stream in ends:
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map():
            left = last - time.monotonic()
            if left <= 0.0:
                raise subprocess.TimeoutExpired(process.args, 0.0)
            for key, _ in selector.select(None if left == math.inf else left):
                block = os.read(key.fd, 1 << 16)
                if not block:
                    selector.unregister(key.fd)
                ends[key.fd] += block
                if len(ends[key.fd]) > 2 * TAIL:
                    del ends[key.fd][: -TAIL - 1]
    output, errors = ends.values()
    return _text_of(output), _text_of(errors)


def _text_of(data: bytearray) -> str:
    """As text; where the beginning is left out, from the first whole word on."""
    text = data[-TAIL:].decode("utf-8", "replace")
    return text if len(data) <= TAIL else re.sub(r"^\S*", "", text, count=1)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End it and its process group; whoever else has its outputs is not waited for."""
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    process.wait()


def _status(code: int) -> str:
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"ended by {signal.Signals(-code).name}"
    return f"exit status {code}"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f": {lines[-1][:LONGEST]}" if lines else ""


def numbers(output: str) -> Iterator[re.Match[str]]:
    """The numbers in a program's output.

    A number stands alone: beside it are blanks, quotes, brackets, `=`, `|`, `*`, `;` and marks that end a sentence. So
    `12s`, `93%`, `1.2.3`, `1/3`, `10^-3` and a number behind another minus sign are none. A comma or a colon may be
    beside it too. None of `,`, `:`, `'` and `*` is between it and a further digit: `0,25`, `1'234.5`, `2*3` are none.
    """
    for match in NUMBER.finditer(output):
        start = match.start()
        if output[start - 1 : start] not in tuple(JOINS) or not JOINED.search(output, max(0, start - NEAR), start):
            yield match


def names_before_numbers(output: str) -> list[str]:
    """The word before each number that has one."""
    starts = {match.start() for match in numbers(output)}
    return [match[1] for match in NAMED.finditer(output) if match.end() in starts]


def read_output(
    output: str, constraints: Sequence[str] = (), value: str | None = None
) -> tuple[str | None, dict[str, float]]:
    """The text of the value, None where there is none, and the constraints, NaN where there is none.

    Each is the last number after its name; a value without a name is the last number without one.
    """
    last, found = None, dict.fromkeys(constraints, math.nan)
    names = [name for name in (*constraints, value) if name is not None]
    spelled = {name.lower(): name for name in names} | {name: name for name in names}
    longest = sorted(map(re.escape, names), key=len, reverse=True)
    named = re.compile(rf"(?<![\w.-])({'|'.join(longest)}){BETWEEN}", re.IGNORECASE)
    labels = {label.end(): label[1] for label in named.finditer(output)} if names else {}
    for match in numbers(output):
        label = labels.get(match.start(), "")
        name = spelled.get(label, spelled.get(label.lower()))
        if name == value:
            last = match[0]
        elif name in found:
            found[name] = float(match[0]) if math.isfinite(float(match[0])) else math.nan
    return last, found
