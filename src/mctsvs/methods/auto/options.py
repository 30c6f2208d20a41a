"""What can be switched off: the options of the default method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mctsvs.utils.options import Options


@dataclass(frozen=True)
class AutoOptions(Options):
    """Parts of the method; each can be left out, to see what it adds (docs/results/ablation.md).

    near       first points around the centre, where that is a good place; without, all over the cube
    tests      find the variables; without, all of them are modelled from the start
    decision   few or many, from fresh groups; without, testing goes on until it gives up
    plateaus   values that often repeat: no tests, and a lengthscale for each variable
    border     where the best point is at the border, every other early step tells variables apart
    challenger where variables are modelled alike, some steps tell them apart: the more, the better their points are
    closer     where the model predicts nothing, steps stay near the best point
    accept     a test that is better becomes the incumbent
    live       early steps move all variables not rejected yet; without, those found alone
    corners    tests are corners of a box, of which every pair tells something; without, changes of the incumbent
    reopen     an audit that finds a change begins a search; without, all variables are modelled
    audit      the rejected variables are changed together before they are forgotten
    alike      where all variables matter and values are exact, or many were found, they are modelled alike
    additive   the model of the found variables has an additive term
    best       every other step models the best points alone
    box        a third of the steps stay in a trust region around the incumbent
    epochs     a fresh start when the model promises nothing more, or has promised too much for too long
    """

    advertised: ClassVar[bool] = False

    near: bool = True
    tests: bool = True
    decision: bool = True
    plateaus: bool = True
    border: bool = True
    challenger: bool = True
    closer: bool = True
    accept: bool = True
    live: bool = True
    corners: bool = True
    reopen: bool = True
    audit: bool = True
    alike: bool = True
    additive: bool = True
    best: bool = True
    box: bool = True
    epochs: bool = True
