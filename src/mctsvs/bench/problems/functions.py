"""The published test functions, all to be MAXIMISED and all pure.

Each takes the vector of its own variables only (shape (n,), natural units) and returns one number. Their
maxima over all of R^n lie inside the usual domain, so that translating a function never creates a better
point: the Hartmann bumps all fall off outside the unit cube, and the others attain a bound that holds
everywhere.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from mctsvs.utils.validation import Array

# Hartmann6 = sum_i ALPHA[i] exp(-sum_j A[i, j] (x_j - P[i, j])^2), on [0, 1]^6.
HARTMANN_ALPHA: Array = np.array([1.0, 1.2, 3.0, 3.2])
HARTMANN_A: Array = np.array(
    [
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ]
)
HARTMANN_P: Array = np.array(
    [
        [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
        [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
        [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
        [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
    ]
)
# The published optimum, 3.32237 at (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573), in full.
HARTMANN_OPTIMUM = 3.322368011415515
HARTMANN_OPTIMIZER: Array = np.array(
    [
        0.20168951100670543,
        0.15001069182345797,
        0.476873974221897,
        0.2753324304940561,
        0.31165161660011326,
        0.6573005340656204,
    ]
)

# Branin = (x2 - B x1^2 + C x1 - 6)^2 + 10 (1 - T) cos(x1) + 10, on [-5, 10] x [0, 15]; smallest value 10 T.
BRANIN_B = 5.1 / (4 * math.pi**2)
BRANIN_C = 5 / math.pi
BRANIN_T = 1 / (8 * math.pi)
BRANIN_OPTIMUM = -10 * BRANIN_T
BRANIN_OPTIMIZER: Array = np.array([math.pi, 2.275])

# Of one variable of Styblinski and Tang's function: the smallest root of 4 x^3 - 32 x + 5 and its value.
TANG_OPTIMIZER = -2.903534027771177
TANG_OPTIMUM = 39.16616570377142


def hartmann_blocks(x: Array) -> Array:
    """Hartmann6 of each consecutive block of six variables: shape (6 k,) to shape (k,)."""
    gap = x.reshape(-1, 1, 6) - HARTMANN_P
    values: Array = np.exp(-(HARTMANN_A * gap * gap).sum(axis=-1)) @ HARTMANN_ALPHA
    return values


def levy(x: Array) -> float:
    """Minus the Levy function; 0 at ones."""
    w = 1 + (x - 1) / 4
    head, last = w[:-1] - 1, float(w[-1])
    middle = head * head * (1 + 10 * np.sin(math.pi * w[:-1] + 1) ** 2)
    first = math.sin(math.pi * float(w[0])) ** 2
    return -(first + float(middle.sum()) + (last - 1) ** 2 * (1 + math.sin(2 * math.pi * last) ** 2))


def branin(x: Array) -> float:
    """Minus the Branin function; -0.397887 at (pi, 2.275) and two more points."""
    x1, x2 = float(x[0]), float(x[1])
    valley = x2 - BRANIN_B * x1 * x1 + BRANIN_C * x1 - 6
    return -(valley * valley + 10 * (1 - BRANIN_T) * math.cos(x1) + 10)


def ackley(x: Array) -> float:
    """Minus the Ackley function (a=20, b=0.2, c=2 pi); 0 at zeros."""
    n = len(x)
    bowl = 20 * math.exp(-0.2 * math.sqrt(float(x @ x) / n))
    ripple = math.exp(float(np.cos(2 * math.pi * x).sum()) / n)
    return bowl + ripple - 20 - math.e


def rosenbrock(x: Array) -> float:
    """Minus the Rosenbrock function; 0 at ones."""
    curve = x[1:] - x[:-1] ** 2
    slope = 1 - x[:-1]
    return -(100 * float(curve @ curve) + float(slope @ slope))


def styblinski_tang(x: Array) -> float:
    """Minus the mean over the variables of (x^4 - 16 x^2 + 5 x) / 2; 39.166 at -2.9035, another hollow at 2.7468."""
    return -float((x**4 - 16 * x * x + 5 * x).mean()) / 2


def griewank(x: Array) -> float:
    """Minus the Griewank function; 0 at zeros."""
    return -(float(x @ x) / 4000 - float(np.cos(x / np.sqrt(np.arange(1, len(x) + 1))).prod()) + 1)


@cache
def rotation(n: int) -> Array:
    """(n, n) one orthogonal matrix for each n."""
    matrix, _ = np.linalg.qr(np.random.default_rng(n).standard_normal((n, n)))
    return np.asarray(matrix)


def rotated(x: Array) -> float:
    """Minus a quadratic function whose axes are those of no variable, ten times as steep along one as along another."""
    along = rotation(len(x)) @ x
    return -float(np.logspace(0, 1, len(x)) @ (along * along))
