"""The default method with several objectives: Bayesian optimisation of the whole front.

First points, then group tests that find the variables that change any objective, where these are few. After that each
point maximises the expected improvement of hypervolume, by a model of each objective.

    engine.py       what a run knows, and which step is next
    group_tests.py  which variables change anything
    units.py        objectives scaled so that the front has size one
    surrogates.py   a model of each objective, and the point that promises most
"""

from mctsvs.methods.multi_objective.engine import MultiObjective

__all__ = ["MultiObjective"]
