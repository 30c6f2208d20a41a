"""A run as it goes, for people: told to the standard `logging`, and shown on a terminal, in a notebook or as lines.

`Follower` is told of every evaluation; what it knows is an `Account`; a view draws that. All of it together takes a
small, fixed share of the run's time: see `Allowance`.
"""

from mctsvs.progress.follower import Follower
from mctsvs.progress.views import somebody

__all__ = ["Follower", "somebody"]
