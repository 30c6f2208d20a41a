"""The few numbers of a study that a list shows, by questions to the file alone: quick, however long the study is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from mctsvs.study.contents import checked_identity
from mctsvs.study.errors import clear_errors, damaged
from mctsvs.study.journal import Journal
from mctsvs.trial import Details


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
        failed = count - succeeded
        if journal.count("details"):
            value, failed = None, failed - _measured_alone(journal)
        return Glance(identity["method"], identity["direction"], count, failed, value)
    finally:
        journal.close()


def _measured_alone(journal: Journal) -> int:
    """Evaluations of which constraints are known and the value is not."""
    with clear_errors(journal.path):
        details = dict(journal.connection.execute("SELECT number, text FROM journal WHERE kind = 'details'"))
        missing = journal.connection.execute(
            "SELECT number FROM journal WHERE kind IN ('tell', 'import') AND value IS NULL"
        ).fetchall()
    try:
        found = [Details.read(details[number]).constraints or {} for (number,) in missing if number in details]
    except ValueError:
        raise damaged(journal.path, "the details of a trial are lost") from None
    return sum(not all(math.isnan(c) for c in constraints.values()) for constraints in found)
