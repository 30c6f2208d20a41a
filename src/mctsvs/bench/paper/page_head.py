"""What all pages have: the head of a page, and the index of a folder of pages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mctsvs.bench.comparison import markdown_table
from mctsvs.bench.paper.entry import PaperEntry
from mctsvs.bench.problems import data
from mctsvs.bench.results import MADE, NOTE, PROBLEM, Numbers
from mctsvs.utils.validation import InputError

SLOW = "Slow methods got less: "
BEGIN, END = "<!-- begin generated -->", "<!-- end generated -->"


def write(path: Path, text: str) -> list[Path]:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror}") from None
    return [path]


@dataclass(frozen=True)
class Provenance:
    """How numbers were made."""

    command: str
    quick: bool = False
    notes: Sequence[str] = ()
    left_out: Sequence[str] = ()  # methods too slow for --quick

    def seeds(self, seeds: Sequence[int]) -> str:
        return seed_list(seeds)

    def lines(self, entry: PaperEntry) -> list[str]:
        """What a page has to say of them."""
        lines = []
        if slower := _slower(entry):
            lines.append(f"{SLOW}{'; '.join(slower)}.")
        if self.quick:
            lines.append("**Quick**: so few seeds and evaluations show that everything runs, and nothing else.")
        if self.left_out:
            lines.append(f"Left out, too slow for this: {', '.join(self.left_out)}.")
        return lines + [f"Note: {note}" for note in self.notes if note]


def beside(before: Numbers, new: Numbers) -> Numbers:
    """Numbers of a page with those of some methods in place of what they were; a note says how these were made."""
    if new.budget != before.budget:
        raise InputError(
            f"--budget {new.budget} does not fit the numbers in the folder, which are of {before.budget} evaluations"
        )
    numbers = [row for row in new.rows if row[0] not in (MADE, NOTE, PROBLEM)]
    cells = {(row[1], row[2]) for row in numbers}
    kept = [row for row in before.rows if row[0] not in (MADE, NOTE, PROBLEM) and (row[1], row[2]) not in cells]
    problems = {row[1]: row for row in (*new.rows, *before.rows) if row[0] == PROBLEM}
    methods = sorted({label.partition("[")[0] for _, label in cells})
    begins = f"{', '.join(methods)}: "
    less = [part for part in _less(before) if part.partition(":")[0] not in methods] + _less(new)
    others = [note for note in (*before.notes, *new.notes) if not note.startswith((SLOW, begins))]
    notes = [f"{SLOW}{'; '.join(less)}."] * bool(less) + list(dict.fromkeys(others))
    notes.append(f"{begins}`{new.command}`, {new.day}, seeds {new.seeds}.")
    return Numbers([before.made, *([NOTE, note] for note in notes), *problems.values(), *kept, *numbers])


def _less(numbers: Numbers) -> list[str]:
    """What a page says of each slow method."""
    said = [note.removeprefix(SLOW).removesuffix(".") for note in numbers.notes if note.startswith(SLOW)]
    return [part for note in said for part in note.split("; ")]


def head(entry: PaperEntry, numbers: Numbers, paper: Numbers | None = None) -> str:
    """Title, where it comes from, how it was made, what was left out, the figures."""
    about = entry.about
    lines = [f"# {about.title}", f"{about.place}. {_made(entry, numbers)}", *numbers.notes]
    if paper is not None:
        lines += [f"Beside it, {_made(entry, paper)}", *paper.notes]
    lines.append(f"The paper: {about.says}")
    lines += [f"Note: {about.note}"] if about.note else []
    lines.append(f"![{about.title}]({entry.name}{_ending(numbers)}.png)")
    if paper is not None:
        lines.append(f"![{about.title}, with the paper's settings]({entry.name}-paper.png)")
    return "\n\n".join(lines) + "\n\n"


def _ending(numbers: Numbers) -> str:
    return "-paper" if is_paper(numbers) else ""


def is_paper(numbers: Numbers) -> bool:
    """Whether they were made with the paper's settings."""
    return "--paper" in numbers.command.split()


def _made(entry: PaperEntry, numbers: Numbers) -> str:
    text = f"`{numbers.command}`, {numbers.day}."
    if not entry.panels:
        return text
    seeds = f"seed{'s' * (int(numbers.made[7] or 0) != 1)} {numbers.seeds}"
    return f"{text} {numbers.budget} evaluations, {seeds}{_options(entry, numbers)}."


def _options(entry: PaperEntry, numbers: Numbers) -> str:
    if entry.measure is None or not entry.measure.with_options:
        return ""
    if is_paper(numbers):
        return ', with the paper\'s settings (`settings="paper"`)'
    return (
        ", with the library's defaults (C_p from the spread of the values, gradient search, 12 evaluations for "
        "TuRBO on a subset)"
    )


def _slower(entry: PaperEntry) -> list[str]:
    """What methods that are too slow for all of it got."""
    effort = entry.effort
    less: dict[str, list[str]] = {}
    for method, count in effort.fewer.items():
        if count < len(effort.seeds):
            less.setdefault(method, []).append(f"{count} seed{'s' * (count > 1)}")
    for method, count in effort.budgets.items():
        if count < effort.budget:
            less.setdefault(method, []).append(f"{count} evaluations")
    return [f"{method}: {' and '.join(parts)}" for method, parts in less.items() if method in entry.methods]


def seed_list(seeds: Sequence[int]) -> str:
    """2021-2025, or all of them where they do not follow one another."""
    if len(seeds) > 1 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]}-{seeds[-1]}"
    return ",".join(map(str, seeds))


def without_paths(note: str) -> str:
    """For a page, which is read elsewhere: no folder of this machine."""
    for place in data.directories():
        note = note.replace(str(place), "DATA")
    return re.sub(r"'DATA'(, 'DATA')*( or 'DATA')?", "'DATA'", note)


def index(folder: Path, entries: Mapping[str, PaperEntry]) -> Path:
    """README.md of a folder of pages: rewritten between two marks, everything around them kept."""
    rows = []
    for name, entry in entries.items():
        page = folder / f"{name}.md"
        if page.is_file():
            text = page.read_text(encoding="utf-8")
            command = re.search(r"`(mctsvs reproduce [^`]*)`, (\d{4}-\d{2}-\d{2})", text)
            judged = [
                re.search(rf"^Against the authors' runs{words}: (.*)\.$", text, re.MULTILINE)
                for words in ("", " with the paper's settings")
            ]
            rows.append(
                [
                    f"[{name}]({name}.md)",
                    entry.about.title,
                    entry.about.place,
                    f"`{command[1]}`, {command[2]}" if command else "",
                    *(found[1] if found else "" for found in judged),
                ]
            )
    header = ["entry", "what", "in the paper", "made by", "our values against the authors' runs"]
    header += ["with the paper's settings"]
    generated = f"{BEGIN}\n\n{markdown_table(header, rows)}\n\n{END}"
    path = folder / "README.md"
    if path.is_file() and BEGIN in (text := path.read_text(encoding="utf-8")) and END in text:
        before, _, rest = text.partition(BEGIN)
        text = before + generated + rest.partition(END)[2]
    elif path.is_file():
        text = path.read_text(encoding="utf-8").rstrip() + f"\n\n{generated}\n"
    else:
        text = f"# The paper's tables and figures, reproduced\n\n{generated}\n"
    write(path, text)
    return path
