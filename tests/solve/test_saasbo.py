"""SAASBO: draws are faithful and repeatable, global state is left alone, the seven properties hold with few steps."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from mctsvs import Optimizer, testing
from mctsvs.common import Array, InputError
from mctsvs.solve.saasbo import SparseSampled

TINY: dict[str, Any] = {"warmup": 8, "mcmc_samples": 8, "thinning": 4, "tree_depth": 2}
# every fit compiles the sampler, which takes seconds: one or two fits make a run light
LIGHT: dict[str, dict[str, Any]] = {
    "saasbo": {**TINY, "refit_growth": 10.0},
    "mcts-vs-saasbo": {**TINY, "subset_batches": 1, "samples": 6},
}


@pytest.fixture(scope="module", autouse=True)
def _libraries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Skips without the libraries; what is compiled once is kept for the next run on the same data."""
    cache = str(tmp_path_factory.mktemp("compiled"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_COMPILATION_CACHE_DIR", cache)  # for the other process of the first check
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecations inside the libraries
            for name in ("botorch", "jax", "numpyro"):
                if "CI" in os.environ:  # there a missing library is a missing install step
                    import_module(name)
                pytest.importorskip(name)
        jax: Any = import_module("jax")
        jax.config.update("jax_compilation_cache_dir", cache)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        yield
        jax.config.update("jax_compilation_cache_dir", None)


def data(n: int, d: int) -> tuple[Array, Array]:
    X = np.random.default_rng(0).random((n, d))
    y = np.sin(6.0 * X[:, 1]) + X[:, 4]
    return X, (y - y.mean()) / y.std()


def test_global_generators_and_settings_are_left_alone() -> None:
    from mctsvs.solve.saasbo import sample

    torch: Any = import_module("torch")
    jax: Any = import_module("jax")
    X, y = data(8, 5)
    torch.manual_seed(3)

    def settings() -> tuple[Any, ...]:
        numpy_state = repr(np.random.get_state())  # noqa: NPY002
        return torch.get_rng_state(), torch.get_num_threads(), jax.config.jax_enable_x64, numpy_state

    before = settings()
    one = sample(X, y, 1, 4, 4, 2, 2)
    after = settings()
    assert torch.equal(before[0], after[0])
    assert before[1:] == after[1:]
    assert {name: value.shape for name, value in one.items()} == {
        "lengthscale": (2, 5),
        "outputscale": (2,),
        "noise": (2,),
        "mean": (2,),
    }
    assert all(value.dtype == np.float64 for value in one.values())


def test_draws_become_members_that_predict_what_botorch_predicts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same parameters in both Gaussian processes give the same mean and deviation."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch: Any = import_module("torch")
        fully_bayesian: Any = import_module("botorch.models.fully_bayesian")
        X, y = data(12, 5)
        rng = np.random.default_rng(1)
        drawn = {
            "lengthscale": rng.uniform(0.3, 3.0, (3, 5)),
            "outputscale": rng.uniform(0.5, 2.0, 3),
            "noise": np.array([1e-3, 1e-2, 0.1]),
            "mean": np.array([0.0, 0.5, -1.0]),
        }
        monkeypatch.setattr("mctsvs.solve.saasbo.sample", lambda *arguments: drawn)
        members = SparseSampled()._fit(X, y, None, rng)
        model = fully_bayesian.SaasFullyBayesianSingleTaskGP(torch.tensor(X), torch.tensor(y)[:, None])
        model.load_mcmc_samples({name: torch.tensor(value) for name, value in drawn.items()})
        model.eval()
        Z = rng.random((4, 5))
        expected = model.posterior(torch.tensor(Z))
        means, variances = expected.mean.detach().numpy()[..., 0], expected.variance.detach().numpy()[..., 0]
    from mctsvs.gp.posterior import Posterior
    from mctsvs.solve.ensemble import KERNELS

    for e in range(3):
        posterior = Posterior.of(KERNELS["matern52"], members.thetas[e], X, y - members.shifts[e])
        mean, sd = posterior.predict(Z)
        np.testing.assert_allclose(mean + members.shifts[e], means[e], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(sd**2, variances[e], rtol=1e-3, atol=1e-5)


@pytest.mark.slow
def test_sampling_finds_the_variables_that_matter() -> None:
    from mctsvs.solve.saasbo import sample

    X, y = data(30, 10)
    drawn = sample(X, y, 1, 128, 64, 8, 6)
    assert set(np.argsort(np.median(drawn["lengthscale"], axis=0))[:2].tolist()) == {1, 4}


def stand_in(X: Array, values: Array, seed: int, *steps: int) -> dict[str, Array]:
    """Draws from nowhere in no time, a function of the arguments only."""
    rng = np.random.default_rng(seed)
    return {
        "lengthscale": rng.uniform(0.2, 5.0, (2, X.shape[1])),
        "outputscale": rng.uniform(0.5, 2.0, 2),
        "noise": np.full(2, 1e-3),
        "mean": rng.normal(0.0, 0.1, 2) + values.mean(),
    }


@pytest.mark.parametrize("check", testing.CHECKS[1:], ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("method", LIGHT)
def test_everything_but_the_sampler_conforms(method: str, check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a fit at every proposal; the first check starts another process, which would not see the stand-in."""
    monkeypatch.setattr("mctsvs.solve.saasbo.sample", stand_in)
    check(method, {}, testing.BUDGET)


@pytest.mark.slow
@pytest.mark.parametrize("check", testing.CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("method", LIGHT)
def test_light_options_conform(method: str, check: Any) -> None:
    check(method, LIGHT[method], 20)


@pytest.mark.slow
@pytest.mark.parametrize("space", ["mixed", "many"])
def test_evaluations_in_mixed_and_in_200_variables(space: str) -> None:
    """Thirty of them in place of a hundred, with two fits: the sampler is slow."""
    options = {**LIGHT["saasbo"], "warmup": 32}
    mixed = space == "mixed"
    opt = Optimizer(testing.MIXED if mixed else [(0.0, 1.0)] * 200, method="saasbo", seed=0, **options)
    for _ in range(30):
        (trial,) = opt.ask()
        value = testing.mixed_objective(trial.params) if mixed else float((trial.x[7] - 0.2) ** 2)
        opt.tell(trial, value)
    assert opt.best.value is not None
    assert opt.best.value < (3.0 if mixed else 0.05)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"warmup": 0}, "warmup=0"), ({"thinning": 0}, "thinning=0"), ({"average": "sum"}, "unknown average 'sum'")],
)
def test_options_are_checked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        SparseSampled(**options)
