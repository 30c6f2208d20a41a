"""What can be switched off: the options of the default method."""

from __future__ import annotations

from dataclasses import dataclass

from mctsvs.options import Options


@dataclass(frozen=True)
class Ablation(Options):
    """Parts of the method; each can be left out, to see what it adds (docs/results/ablation.md)."""

    tests: bool = True  # find the variables; without, all of them are modelled from the start
    decision: bool = True  # few or many, from fresh groups; without, testing goes on until it gives up
    accept: bool = True  # a test that is better becomes the incumbent
    live: bool = True  # early steps move all variables not rejected yet; without, those found alone
    audit: bool = True  # the rejected variables are changed together before they are forgotten
    additive: bool = True  # the model of the found variables has an additive term
    best: bool = True  # every other step models the best points alone
    box: bool = True  # a third of the steps stay in a trust region around the incumbent
    epochs: bool = True  # a fresh start when the model promises nothing more, or has promised too much for too long
