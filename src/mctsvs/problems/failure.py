"""What an objective raises when an evaluation gave no value."""

from __future__ import annotations


class EvaluationFailed(Exception):
    """One line that says why; a run records it and goes on."""
