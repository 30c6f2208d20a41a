"""What all pages have: the head of a page, and the index of a folder of pages."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from mctsvs.common import InputError
from mctsvs.lab import cases
from mctsvs.lab.comparison import markdown_table
from mctsvs.lab.entries import ENTRIES
from mctsvs.lab.entry import Entry
from mctsvs.lab.settings import QUICK_ONLY
from mctsvs.problems import data

BEGIN, END = "<!-- begin generated -->", "<!-- end generated -->"


def write(path: Path, text: str) -> list[Path]:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror}") from None
    return [path]


def head(entry: Entry, command: str, quick: bool, paper: bool, notes: Sequence[str]) -> str:
    """Title, where it comes from, how it was made, what was left out, the figure."""
    seeds = f"seed{'s' * (len(entry.seeds) > 1)} {seed_list(entry.seeds)}"
    fewer = {method: count for method, count in entry.fewer.items() if count < len(entry.seeds)}
    budgets = {method: count for method, count in entry.budgets.items() if count < entry.budget}
    slower = [
        f"{method}: "
        + " and ".join(
            part
            for part in (
                f"{fewer[method]} seed{'s' * (fewer[method] > 1)}" if method in fewer else "",
                f"{budgets[method]} evaluations" if method in budgets else "",
            )
            if part
        )
        for method in dict.fromkeys([*fewer, *budgets])
        if any(cases.parse(case).method == method for p in entry.problems for case in entry.cases(p))
    ]
    if entry.measure == "regret":
        setting = ""  # GP-UCB has none of these options
    elif paper:
        setting = ", with the paper's exploration constant, candidate search and 50 evaluations for TuRBO on a subset"
    else:
        setting = (
            ", with the library's defaults (C_p from the spread of the values, gradient search, 12 evaluations for "
            "TuRBO on a subset)"
        )
    lines = [
        f"# {entry.title}",
        f"{entry.place}. `{command}`, {time.strftime('%Y-%m-%d')}."
        + (f" {entry.budget} evaluations, {seeds}{setting}." if entry.panels else ""),
    ]
    if slower:
        lines.append(f"Slow methods got less: {'; '.join(slower)}.")
    if quick:
        lines.append("**Quick**: so few seeds and evaluations show that everything runs, and nothing else.")
        whole = ENTRIES[entry.name]
        had = {cases.parse(case).method for problem in whole.problems for case in whole.cases(problem)}
        if left_out := [method for method, only in QUICK_ONLY.items() if method in had and entry.name != only]:
            lines.append(f"Left out, too slow for this: {', '.join(left_out)}.")
    lines.append(f"The paper: {entry.says}")
    lines += [f"Note: {note}" for note in ([entry.note] if entry.note else []) + list(notes)]
    lines.append(f"![{entry.title}]({entry.name}.png)")
    return "\n\n".join(lines) + "\n\n"


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


def index(folder: Path, entries: Mapping[str, Entry]) -> Path:
    """README.md of a folder of pages: rewritten between two marks, everything around them kept."""
    rows = []
    for name, entry in entries.items():
        page = folder / f"{name}.md"
        if page.is_file():
            text = page.read_text(encoding="utf-8")
            command = re.search(r"`(mctsvs reproduce [^`]*)`, (\d{4}-\d{2}-\d{2})", text)
            judged = re.search(r"^Against the authors' runs: (.*)\.$", text, re.MULTILINE)
            rows.append(
                [
                    f"[{name}]({name}.md)",
                    entry.title,
                    entry.place,
                    f"`{command[1]}`, {command[2]}" if command else "",
                    judged[1] if judged else "",
                ]
            )
    header = ["entry", "what", "in the paper", "made by", "our values against the authors' runs"]
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
