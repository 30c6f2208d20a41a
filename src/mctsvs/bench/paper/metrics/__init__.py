"""What an entry shows of its runs: a small class for each kind, with its figure, its numbers and its table."""

from mctsvs.bench.paper.metrics.base import Metric
from mctsvs.bench.paper.metrics.best import Best
from mctsvs.bench.paper.metrics.tables import Recall, Regret, Seconds, Significance

__all__ = ["Best", "Metric", "Recall", "Regret", "Seconds", "Significance"]
