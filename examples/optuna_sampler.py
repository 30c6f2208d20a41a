"""Inside Optuna: the objective, pruning, storage and dashboard stay Optuna's, the points come from here.

pip install 'mctsvs[optuna]'
python examples/optuna_sampler.py            # QUICK=1: a few trials only
"""

from __future__ import annotations

import os

import optuna

from mctsvs.integrations.optuna import MCTSVSSampler

TRIALS = 12 if os.environ.get("QUICK") else 150


def objective(trial: optuna.Trial) -> float:
    x = [trial.suggest_float(f"x{i}", -5.0, 10.0) for i in range(100)]
    rate = trial.suggest_float("rate", 1e-5, 1.0, log=True)
    return float((x[17] - 1.0) ** 2 + (x[53] + 2.0) ** 2 + abs(rate - 0.01))


def main() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=MCTSVSSampler(seed=0))
    study.optimize(objective, n_trials=TRIALS)
    chosen = {name: round(study.best_params[name], 3) for name in ("x17", "x53", "rate")}
    print(f"best value {study.best_value:.4g} with {chosen} after {len(study.trials)} trials")


if __name__ == "__main__":
    main()
