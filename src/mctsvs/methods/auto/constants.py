"""The numbers of the method, and what of it can be switched off.

Where a page is named, other values or doing without were measured there. The page is docs/results/ablation.md: what
each part adds, and under "Tried and left out" what did worse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mctsvs.utils.options import Options

# the design (page: first points around the centre; Sobol points to start from)
DESIGN = 10  # points before the first decision
SPREAD = 3  # of them, the centre among them, are spread over the cube in any case
NEAR = 0.2  # half a side of the box around the best point whose corners they are, where coordinates are many
FIRST_PROBE = 26  # evaluations before the first probe: after the design, steps of the model of all variables
DESIGN_OF_ALL = 20  # points before a model that has to tell variables apart

# noise
COUNTABLE = 1000  # points of a space in which none is evaluated twice to look for noise
REPEATS = 3  # where values tie, which noise in steps may do by chance; elsewhere one tells

# comparing
SAME = 1e-9  # values closer than this share of their range are equal
SAME_POINT = 1e-6  # a point this near to a known one in every coordinate is that one again
STUCK = 1e-3  # a coordinate under test that constraints let change by less has not been tested
LEAST_PUSH, PUSHES = 0.2, 0.6  # least change of a coordinate under test, and what is added at most

# how many variables matter (page: decision)
AFFORDABLE, REACHABLE = 110.0, 15  # tests worth spending, and variables found in any case; where no budget is known
COST = 0.67  # of the tests that halving would need
TESTABLE = 0.6  # of a known budget, after the design, may go into tests
FEWEST = 4  # variables that tests must be able to find to be begun at all
LEAST_PROBES, MOST_PROBES = 4, 16  # fresh groups before the decision
SURE_SPARSE, SURE_DENSE = 0.2, 0.95  # probability of too many below or above which there is nothing left to ask
DENSE = 0.5  # probability of too many from which on all variables are modelled

# which variables matter (page: tests)
EXPECTED = 8.0  # active variables expected before anything is known
CERTAIN = 30.0  # log Bayes factor of one test: without noise a change is a change
FOUND = 0.95  # a variable more probable than this counts as found
GROUP_CAP = 2.2  # largest log odds from groups alone: a variable is tested on its own before it is believed
SWEEPS = 8  # of belief propagation
SETTLED = 0.05  # expected number of active variables left at which testing ends
GIVE_UP = 1.6  # times the tests worth spending, without an end
TEST_SHARE = 0.85  # of the evaluations while testing, the others are steps (page: steps at a half or a third)
AUDITS, LAST = 3, 15  # changes of all rejected variables; evaluations left at which none is begun (page: audit)
SIDES, JITTER = (0.08, 0.3), 0.2  # least and largest side of the box of corner tests, and how far sides differ
REOPENINGS = 3  # searches among the rejected variables that audits may begin
TWINS = 5  # points of equal value that one from elsewhere is compared with

# the models (page: best, many found variables)
SEVERAL = 15  # found variables, beyond which a model that treats them alike has turns too
BEST_SHARE = 0.3  # of the points, in the model of the best

# the model of all variables (page: in the model of all variables)
WIDEST_MODEL = 2000  # coordinates of the model; of more, a changing part is moved
PART, PART_TURNS = 1000, 20  # coordinates of that part, and the proposals it serves for

# which arm has the next turn
PLATEAUS = 0.25  # share of values that repeat another from which on a change of a variable says little
WINDOW = 30  # points that are remembered, or two batches
SHARE = 0.25  # of the largest credit, which every arm has
HOPE = 0.03  # worth of the point that every arm is credited with in addition, the largest gain being 1
ENOUGH, MOST_ENOUGH = 1.5, 60  # points for each coordinate, and in all, from which on the local model has turns
ROUNDS = 20  # batches left, fewer than which leave no time for tests

# the same under noise
COMPARED = (45, 68)  # points at which the models are compared
FOLDS, COMPARING = 4, 40  # parts held out in turn, steps of a fit
LARGEST_GAIN = 2.0  # of log density, by which a single value may speak for a model
CLEARLY = 3.5  # standard errors by which the model that treats variables alike must be ahead
ALIKE_TURNS = 4  # of so many, all but one are then its turns
NOT_MANY = 100  # coordinates; of more, it is taken for likely that few matter


@dataclass(frozen=True)
class AutoOptions(Options):
    """Parts of the method; each can be left out, to see what it adds (docs/results/ablation.md).

    tests      find the variables; without, all of them are modelled from the start
    corners    tests are corners of a box, of which every pair tells something; without, changes of the incumbent
    audit      the rejected variables are changed together before they are forgotten
    alike      an arm that models variables alike
    apart      an arm that models all variables with a lengthscale for each
    close      an arm that takes steps close to the best point, by a quadratic model
    """

    advertised: ClassVar[bool] = False

    tests: bool = True
    corners: bool = True
    audit: bool = True
    alike: bool = True
    apart: bool = True
    close: bool = True
