"""What CMA-ES, Optuna's samplers and VAE-BO have in common: packages of others behind our interface."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

from mctsvs import Optimizer
from mctsvs.methods import registry
from mctsvs.testing import MIXED, drive, mixed_objective
from mctsvs.utils.validation import InputError

NEEDS = {
    "cma-es": ("cma", "cma"),
    "optuna-tpe": ("optuna", "optuna"),
    "optuna-gp": ("optuna and torch", "optuna-gp"),
    "vae-bo": ("torch", "torch"),
}
INSTALLED = {name: not registry.missing(registry.METHODS[name]) for name in NEEDS}


def needs(method: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not INSTALLED[method], reason=f"{method} needs {NEEDS[method][0]}")


@pytest.mark.parametrize("method", NEEDS)
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(name: str, package: str | None = None) -> None:
        return None

    monkeypatch.setattr("mctsvs.methods.registry.importlib.util.find_spec", nothing)
    packages, extra = NEEDS[method]
    with pytest.raises(InputError) as caught:
        Optimizer([(0, 1)] * 3, method=method)
    expected = f"method '{method}' needs {packages}, not installed here: pip install 'mctsvs[{extra}]'"
    assert str(caught.value) == expected


def test_the_error_names_only_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "mctsvs.methods.registry.importlib.util.find_spec", lambda name: None if name == "torch" else find("numpy")
    )
    with pytest.raises(
        InputError, match=r"'optuna-gp' needs torch, not installed here: pip install 'mctsvs\[optuna-gp\]'"
    ):
        Optimizer([(0, 1)] * 3, method="optuna-gp")


def run_mixed(method: str, budget: int, **options: Any) -> None:
    opt = Optimizer(MIXED, method=method, seed=0, **options)
    values = []
    for _ in range(budget):
        (trial,) = opt.ask()
        values.append(mixed_objective(trial.params))
        opt.tell(trial, values[-1])
    assert opt.best.value == min(values)
    assert min(values[budget // 2 :]) < np.median(values[:10])  # later points know something


def run_wide(method: str, budget: int, **options: Any) -> None:
    box = [(-5.0, 10.0)] * 200
    opt = Optimizer(box, method=method, seed=0, **options)
    X = drive(opt, lambda x: float(((x[:5] - 1.0) ** 2).sum()), budget)
    assert X.shape == (budget, 200)
    assert ((X >= -5.0) & (X <= 10.0)).all()
    assert len(np.unique(X, axis=0)) == budget


@pytest.mark.parametrize("method", [pytest.param(m, marks=needs(m)) for m in ("cma-es", "optuna-tpe", "vae-bo")])
def test_hundred_evaluations_of_five_mixed_variables(method: str) -> None:
    run_mixed(method, 100)


@pytest.mark.parametrize("method", [pytest.param(m, marks=needs(m)) for m in ("cma-es", "vae-bo")])
def test_hundred_evaluations_of_two_hundred_variables(method: str) -> None:
    run_wide(method, 100)


@pytest.mark.slow
@needs("optuna-tpe")
def test_optuna_tpe_hundred_evaluations_of_two_hundred_variables() -> None:
    run_wide("optuna-tpe", 100)


@pytest.mark.slow
@needs("optuna-gp")
def test_optuna_gp_on_both_spaces() -> None:
    """Fewer evaluations, 25 and 13: it takes seconds for each once it has a model."""
    run_mixed("optuna-gp", 25)
    run_wide("optuna-gp", 13)


GLOBAL = [pytest.param(m, 25, marks=needs(m)) for m in ("cma-es", "optuna-tpe", "vae-bo")]


@pytest.mark.parametrize(("method", "budget"), [*GLOBAL, pytest.param("optuna-gp", 12, marks=needs("optuna-gp"))])
def test_generators_and_settings_of_the_packages_are_left_alone(
    method: str, budget: int, capfd: pytest.CaptureFixture[str]
) -> None:
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].tolist()  # type: ignore[index]  # noqa: NPY002
    torch_before: Any = None
    if INSTALLED["vae-bo"]:
        import torch

        torch_before = (torch.get_rng_state().tolist(), torch.get_num_threads(), torch.get_default_dtype())
    drive(Optimizer([(0, 1)] * 6, method=method, seed=0), lambda x: float(x.sum()), budget)
    assert np.random.get_state()[1].tolist() == before  # type: ignore[index]  # noqa: NPY002
    if torch_before is not None:
        after = (torch.get_rng_state().tolist(), torch.get_num_threads(), torch.get_default_dtype())
        assert after == torch_before
    assert capfd.readouterr() == ("", "")
