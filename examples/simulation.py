"""A simulation with 300 settings and constraints: a stirred reactor in which A becomes B, and B becomes waste.

Six settings matter; the other 294 are trims of the plant that do nothing here, which the search does not know. The
yield of B is maximised. Two things must hold: what is known beforehand, a limit on pump and coolant together, is a
text, and no point violates it; what only the simulation shows, the highest temperature on the way, comes back beside
the value.

    python examples/simulation.py            # QUICK=1: a few evaluations only
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

import mctsvs
from mctsvs import Float

BUDGET = 12 if os.environ.get("QUICK") else 200
HOTTEST = 395.0  # K, above which the cooling fails

SETTINGS: dict[str, Any] = {
    "feed_temperature": Float(290.0, 360.0),
    "residence_time": Float(0.5, 20.0, log=True),
    "coolant_flow": Float(0.0, 1.0),
    "pump_speed": Float(0.2, 1.0),
    "catalyst": Float(0.01, 1.0, log=True),
    "feed_concentration": Float(0.5, 2.0),
    **{f"trim_{i}": Float(-1.0, 1.0) for i in range(294)},
}


def reactor(p: dict[str, float]) -> tuple[float, dict[str, float]]:
    """Start-up of the reactor: yield of B at its end, and how far the temperature went above its limit."""
    feed, flow = p["feed_concentration"], 1.0 / p["residence_time"]
    cooling = 2.0 * p["coolant_flow"] * (0.3 + p["pump_speed"])

    def slope(t: float, state: Any) -> list[float]:
        a, b, temperature = state
        useful = p["catalyst"] * 3e7 * np.exp(-5600.0 / temperature) * a
        wasteful = 6e9 * np.exp(-8200.0 / temperature) * b
        heat = 60.0 * useful + 90.0 * wasteful - cooling * (temperature - 290.0) / 10.0
        return [
            flow * (feed - a) - useful,
            useful - wasteful - flow * b,
            flow * (p["feed_temperature"] - temperature) + heat,
        ]

    course = solve_ivp(slope, (0.0, 10.0 * p["residence_time"]), [0.0, 0.0, 290.0], method="LSODA", rtol=1e-6)
    return float(course.y[1, -1] / feed), {"too hot": float(course.y[2].max()) - HOTTEST}


def main() -> None:
    result = mctsvs.maximize(
        reactor,
        SETTINGS,
        budget=BUDGET,
        seed=0,
        constraints="pump_speed + coolant_flow <= 1.5",
        progress=True,
    )
    print(result)
    print(f"yield {result.fun:.3f}, feasible: {result.feasible}")
    for row in result.variables:
        if row.status == "active":
            print(f"  {row}: best at {result.x[row.name]:.4g}")


if __name__ == "__main__":
    main()
