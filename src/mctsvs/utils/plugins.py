"""What comes from outside: from a file (`path/to/file.py:name`), a module (`package.module:name`), or another package.

A package offers its things as entry points, in a `Group` for each kind of thing. Packages are looked at only when a
name is not built in or a list is wanted, and one that is broken does not stand in the way of the others.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mctsvs.utils.validation import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


def is_spec(text: str) -> bool:
    """Whether the text points into a file or module, or is meant to: no plain name has a colon."""
    return ":" in text or text.endswith(".py")


def load(spec: str, kind: str = "function") -> Any:
    """What the name after the last colon stands for; `kind` is the word for it in errors."""
    where, _, name = spec.rpartition(":")
    if not where or not all(part.isidentifier() for part in name.split(".")):
        raise InputError(f"{spec!r} names no {kind}: write path/to/file.py:{kind} or package.module:{kind}")
    home = module(where, kind)
    try:
        return functools.reduce(getattr, name.split("."), home)
    except AttributeError:
        own = [key for key, value in vars(home).items() if getattr(value, "__module__", None) == home.__name__]
        there = [key for key in own if not key.startswith("_")]
        has = f"it has {', '.join(there)}" if there else f"it has no {kind}s"
        raise InputError(f"{where!r} has no {kind} {name!r}: {has}") from None


def absolute(spec: str) -> str:
    """The same from any folder: for processes that may be started elsewhere."""
    where, _, name = spec.rpartition(":")
    return f"{Path(where).resolve()}:{name}" if where.endswith(".py") else spec


def module(where: str, kind: str = "function") -> ModuleType:
    """The file or module; a relative path is seen from the current directory."""
    if where.endswith(".py"):
        path = Path(where).resolve()
        if not path.is_file():
            raise InputError(f"there is no file {str(path)!r}: write path/to/file.py:{kind}")
        return _import(str(path), lambda: _file(path))
    try:
        missing = importlib.util.find_spec(where.partition(".")[0]) is None
    except (ImportError, ValueError):  # an empty name, or one from the dot on
        missing = True
    if missing:
        raise InputError(f"there is no module {where!r}: write path/to/file.py:{kind} or package.module:{kind}")
    return _import(where, lambda: importlib.import_module(where))


def _import(where: str, how: Callable[[], ModuleType]) -> ModuleType:
    try:
        return how()
    except SyntaxError as error:
        raise InputError(f"{where!r} is not Python: {error.msg} in line {error.lineno}") from None
    except (Exception, SystemExit) as error:
        raise InputError(f"cannot import {where!r}: {said(error)}") from error


@functools.cache
def _file(path: Path) -> ModuleType:
    """Imported once, under a name that hides no other module; its folder is searched as when it is run as a script."""
    name = f"mctsvs_file_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    sys.modules[name] = made  # dataclasses look their module up there
    try:
        spec.loader.exec_module(made)
    except BaseException:
        del sys.modules[name]
        raise
    return made


def said(error: BaseException) -> str:
    """An exception in one line."""
    lines = str(error).split("\n")
    text = next((line.strip() for line in lines if line.strip()), "")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


@dataclass(frozen=True)
class Group(Generic[T]):
    """One kind of thing that installed packages may offer."""

    name: str  # of the entry points
    kind: str  # the word for one of them
    read: Callable[[str, str], T]  # name and package.module:name -> the thing, or an InputError that says why not

    def names(self) -> list[str]:
        return list(dict.fromkeys(entry.name for entry in self._entries()))

    def find(self, name: str) -> T | None:
        """The thing of that name, or an InputError if its package does not work; None: nobody has one."""
        entry = next((entry for entry in self._entries() if entry.name == name), None)
        return None if entry is None else self._open(entry)

    def all(self, built_in: Collection[str] = ()) -> tuple[dict[str, T], list[str]]:
        """All that work, by name, and a sentence on each that does not; a name that is taken keeps its meaning."""
        found: dict[str, T] = {}
        complaints = []
        for entry in self._entries():
            try:
                if entry.name in built_in:
                    raise self._unusable(entry, f"a built-in {self.kind} has that name")
                if entry.name in found:
                    raise self._unusable(entry, "another package has that name")
                found[entry.name] = self._open(entry)
            except InputError as error:
                complaints.append(str(error))
        return found, complaints

    def _entries(self) -> list[EntryPoint]:
        from importlib.metadata import entry_points

        return sorted(entry_points(group=self.name), key=lambda entry: (entry.name, _package(entry)))

    def _open(self, entry: EntryPoint) -> T:
        try:
            return self.read(entry.name, entry.value.partition("[")[0].strip())
        except InputError as error:
            raise self._unusable(entry, str(error)) from error

    def _unusable(self, entry: EntryPoint, why: str) -> InputError:
        return InputError(f"{self.kind} {entry.name!r} of the package {_package(entry)!r} cannot be used: {why}")


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "?"
