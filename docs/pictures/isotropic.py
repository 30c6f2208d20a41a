"""The figure of docs/results/ablation.md: `python docs/pictures/isotropic.py`; the site draws it when it is built.

Sixty variables, a bowl whose bottom is at a random place, and as many values as a search has at its beginning: what two
models expect on the way from the centre of the cube through the bottom, of which neither has seen a point.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from mctsvs.bench import figures
from mctsvs.bench.styles import BLACK, BLUE, GREY, RED
from mctsvs.gp.model import Model, ModelSettings
from mctsvs.methods.base import latin_hypercube

D, COUNTS, SEED = 60, (10, 20, 40), 3
MODELS = {"se": ("a lengthscale for each variable", BLUE), "shared+iso": ("with the isotropic term", RED)}


def main(stem: Path = Path("isotropic")) -> None:
    rng = np.random.default_rng(SEED)
    bottom = 0.5 + rng.uniform(-0.35, 0.35, D)
    points = np.concatenate([np.full((1, D), 0.5), latin_hypercube(max(COUNTS) - 1, D, rng)])
    values = -((points - bottom) ** 2).sum(axis=1)
    way = np.linspace(-0.6, 2.0, 131)
    line = 0.5 + way[:, None] * (bottom - 0.5)
    true = -((line - bottom) ** 2).sum(axis=1)
    figure, panels = plt.subplots(1, len(COUNTS), figsize=(9.6, 3.3), sharey=True, layout="constrained")
    for panel, n in zip(panels, COUNTS, strict=True):
        y = values[:n]
        panel.plot(way, true, color=BLACK, linewidth=1.2, label="the bowl")
        for kernel, (label, colour) in MODELS.items():
            settings = ModelSettings(kernel=kernel, prior="dimension-scaled", constant_mean=True, winsorise=False)
            posterior = Model(settings).update(points[:n], y)
            mean, sd = (part * y.std() for part in posterior.predict(line))
            mean = mean + y.mean()
            panel.plot(way, mean, color=colour, label=label)
            panel.fill_between(way, mean - sd, mean + sd, color=colour, alpha=0.15, linewidth=0)
        panel.axvline(1.0, color=GREY, linewidth=0.8, linestyle=":")
        panel.set_title(f"{n} values, {D} variables", fontsize=10)
        panel.set_xlabel("way from the centre (0) to the bottom (1)", fontsize=9)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("value")
    panels[-1].legend(frameon=False, fontsize=8, loc="lower center")
    figures.save(figure, stem)


if __name__ == "__main__":
    main()
