"""Where the paper's text and its authors' program differ: one value object that the tree and its parts read.

The text is Algorithm 1 with Eq. 1 and Eq. 2 as printed; the program is what the authors published (docs/design.md has
the table).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mctsvs.utils.validation import check_choice


@dataclass(frozen=True)
class Variant:
    """The rules of one reading; the defaults are the text's.

    best_of_subset   Eq. 2's numerator takes the best value of each distinct subset once, not the value of every point
    largest_score    v_X of a node is its variables' largest score, not their mean
    root_growth      Eq. 1 has sqrt(n_parent) in place of log(n_parent)
    restart_at_limit a new tree when n_bad >= N_bad, not when n_bad > N_bad (line 7)
    visit_by_subset  each distinct subset moved counts as a visit of the path, not each iteration; equal subsets of an
                     iteration are moved once
    split_at_limit   a leaf with |A| >= N_split is split, at >= the mean, unless both children would be smaller than
                     N_split; not one with |A| > N_split, at > the mean
    median           a split is at the median score, not at the mean
    """

    best_of_subset: bool = False
    largest_score: bool = False
    root_growth: bool = False
    restart_at_limit: bool = False
    visit_by_subset: bool = False
    split_at_limit: bool = False
    median: bool = False


TEXT = Variant()
PROGRAM = Variant(
    best_of_subset=True,
    largest_score=True,
    root_growth=True,
    restart_at_limit=True,
    visit_by_subset=True,
    split_at_limit=True,
)
VARIANTS = {
    "text": TEXT,
    "authors-program": PROGRAM,
    "authors-recall": replace(PROGRAM, median=True),  # what their script for the table of recalls ran
}


def variant(name: str) -> Variant:
    """The variant of that name."""
    return VARIANTS[check_choice("variant", name, VARIANTS)]
