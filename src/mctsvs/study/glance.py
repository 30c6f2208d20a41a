"""The few numbers of a study that a list shows, by questions to the file alone: quick, however long the study is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mctsvs.study.contents import checked_identity
from mctsvs.study.errors import clear_errors, damaged
from mctsvs.study.journal import Journal


@dataclass(frozen=True)
class Glance:
    """What is in a study; the best value is left out where there are constraints, which it may break."""

    method: str
    direction: str
    evaluations: int
    failed: int
    best: float | None


def glance(path: Path) -> Glance:
    journal = Journal(path, readonly=True)
    try:
        try:
            identity = checked_identity(journal.meta().get("identity"))
        except ValueError:
            raise damaged(path, "what it is about is lost") from None
        best = "max" if identity["direction"] == "maximize" else "min"
        query = f"SELECT count(*), count(value), {best}(value) FROM journal WHERE kind IN ('tell', 'import')"
        with clear_errors(path):
            count, succeeded, value = journal.connection.execute(query).fetchone()
        value = None if journal.count("details") else value
        return Glance(identity["method"], identity["direction"], count, count - succeeded, value)
    finally:
        journal.close()
