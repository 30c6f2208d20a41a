"""The initial design of engines that are no product of selector and solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mctsvs.methods.base import Engine
from mctsvs.utils.options import Options, option
from mctsvs.utils.validation import Array


@dataclass(frozen=True)
class InitialDesignOptions(Options):
    """initial_points  of the design before the model takes over"""

    initial_points: int = option(10, least=1)


class InitialDesignEngine(Engine):
    """Hands out a design first, and drops it once as many points are known as it has, wherever they come from."""

    saved: ClassVar[tuple[str, ...]] = ("design", "enough")
    design: Array  # points not yet handed out, one a row
    enough: int  # points known that make the rest of it needless

    def begin(self, design: Array) -> None:
        """A design for what is not known yet; also for a search that starts anew."""
        self.design, self.enough = design, len(self.history) + len(design)

    def from_design(self, n: int) -> Array:
        """The next points of the design, at most n."""
        if len(self.history) >= self.enough:
            self.design = self.design[:0]
        points, self.design = self.design[:n], self.design[n:]
        return points
