"""What an entry shows of its runs: a small class for each kind, with its figure, its numbers and its table."""

from mctsvs.lab.measures.base import Measure
from mctsvs.lab.measures.best import Best
from mctsvs.lab.measures.regret import Regret
from mctsvs.lab.measures.tables import Recall, Seconds, Significance

__all__ = ["Best", "Measure", "Recall", "Regret", "Seconds", "Significance"]
