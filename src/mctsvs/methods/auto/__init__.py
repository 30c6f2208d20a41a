"""The default method: find the variables that matter by tests that are steps, then optimise those alone.

A run goes through phases (`phases.py`):

    Design          the centre and a few points around the best so far; the best of them becomes the incumbent
      |
    NoiseTest       the incumbent once more --------------------------- another value: noise .
      |                                                                                  |
    ActiveCountTest a few steps in all variables ---------------------- values in steps -+
      |             then fresh groups are changed: how many of them matter? -- too many -+
      |                                                                                  |
    Tests           groups, until every variable is found or rejected ---------- no end -+
      |  ^          now and then a step in the variables not rejected, or found          |
      v  |                                                                               |
    Audit           all rejected variables at once: if they act after all, back, to      |
      |             search between the audit's own two points ---------------- too often +
      |                                                                                  |
    OptimiseSubspace   Bayesian optimisation of the found variables             OptimiseFullSpace   of all variables

Every test is also a step: the changed point becomes the incumbent if it is better. All evaluations are shared, so that
a change of phase loses nothing.

Read phases.py first, then engine.py, which holds what a run knows. The other files are:

    screening.py            what is asked about variables, and what the answers say
    evidence.py             how many variables matter, and which
    box_corners.py          two ways to find them between two points
    surrogates.py           the models that propose steps
    local_quadratic.py      steps close to the best point
    portfolio.py            which of these models proposes next
    constants.py            the numbers and where they were measured, and what can be switched off
"""

from mctsvs.methods.auto.engine import Auto

__all__ = ["Auto"]
