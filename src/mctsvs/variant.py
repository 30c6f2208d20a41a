"""Where the paper's text and its authors' program differ: one value object that the tree and its parts read.

The text is Algorithm 1 with Eq. 1 and Eq. 2 as printed; the program is what the authors published (docs/design.md has
the table).
"""

from __future__ import annotations

from dataclasses import dataclass

from mctsvs.common import check_choice


@dataclass(frozen=True)
class Variant:
    """The rules of one reading; the defaults are the text's.

    best_of_subset   Eq. 2's numerator takes the best value of each distinct subset once, not the value of every point
    largest_score    v_X of a node is its variables' largest score, not their mean
    root_growth      Eq. 1 has sqrt(n_parent) in place of log(n_parent)
    restart_at_limit a new tree when n_bad >= N_bad, not when n_bad > N_bad (line 7)
    """

    best_of_subset: bool = False
    largest_score: bool = False
    root_growth: bool = False
    restart_at_limit: bool = False


TEXT = Variant()
VARIANTS = {
    "text": TEXT,
    "authors-program": Variant(best_of_subset=True, largest_score=True, root_growth=True, restart_at_limit=True),
}


def variant(name: str) -> Variant:
    """The variant of that name."""
    return VARIANTS[check_choice("variant", name, VARIANTS)]
