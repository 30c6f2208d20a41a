"""Methods by name: which selector, solver and fill-in make them, and which extra they need."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mctsvs import select, solve
from mctsvs.common import Indices, InputError
from mctsvs.engine import Engine
from mctsvs.engines.subspace import SubspaceEngine, SubspaceOptions
from mctsvs.options import Options

DEFAULT = "mcts-vs"
MCTS_VS = "Song et al., NeurIPS 2022"
DROPOUT = "Li et al., IJCAI 2017"
SAAS = "Eriksson and Jankowiak, UAI 2021"
TURBO = "Eriksson et al., NeurIPS 2019"
BURST = {"burst": 12}  # evaluations of TuRBO on a subset; the MCTS-VS paper allows up to 50, fewer measured better


@dataclass(frozen=True)
class Method:
    """One line of the table of methods: a product of selector and solver, or an engine of its own."""

    name: str
    summary: str
    paper: str
    selector: str | None = None
    solver: str | None = None
    engine: str | None = None  # "module:Class" in mctsvs, for what is no such product
    extra: str | None = None  # of the package, as in pip install 'mctsvs[extra]'
    needs: tuple[str, ...] = ()  # modules the extra brings
    defaults: Mapping[str, Any] = field(default_factory=dict)  # options this method changes


def _table(*methods: Method) -> dict[str, Method]:
    return {method.name: method for method in methods}


METHODS: Mapping[str, Method] = _table(
    Method(
        "mcts-vs",
        "variables found by tests that are steps, then optimised alone; all variables modelled where tests cannot tell",
        "this library",
        engine="default:EvidenceSearch",
    ),
    Method("mcts-vs-bo", "tree-selected variables moved by Bayesian optimisation", MCTS_VS, "mcts", "bo"),
    Method("mcts-vs-rs", "tree-selected variables moved by random search", MCTS_VS, "mcts", "random"),
    Method("dropout-bo", "d random variables moved by Bayesian optimisation", DROPOUT, "dropout", "bo"),
    Method("dropout-rs", "d random variables moved by random search", DROPOUT, "dropout", "random"),
    Method("bo", "vanilla Bayesian optimisation of all variables", "Shahriari et al., 2016", "all", "bo"),
    Method(
        "bo-dsp",
        "all variables under the dimension-scaled lengthscale prior",
        "Hvarfner et al., ICML 2024",
        "all",
        "bo",
        defaults={**solve.DIMENSION_SCALED, "samples": 1, "initial_points": 20},
    ),
    Method("turbo", "Bayesian optimisation in a trust region", TURBO, "all", "turbo", defaults=BURST),
    Method("turbo-m", "five trust regions that compete", TURBO, "all", "turbo", defaults={**BURST, "regions": 5}),
    Method("mcts-vs-turbo", "tree-selected variables moved by TuRBO", MCTS_VS, "mcts", "turbo", defaults=BURST),
    Method(
        "lasso-turbo",
        "variables of the largest LASSO coefficients moved by TuRBO",
        MCTS_VS,
        "lasso",
        "turbo",
        extra="sklearn",
        needs=("sklearn",),
        defaults=BURST,
    ),
    Method("dropout-turbo", "d random variables moved by TuRBO", DROPOUT, "dropout", "turbo", defaults=BURST),
    Method("random", "random search over all variables", "Bergstra and Bengio, 2012", "all", "random"),
    Method(
        "cma-es",
        "evolution strategy with covariance matrix adaptation",
        "Hansen and Ostermeier, 2001",
        engine="engines.cma_es:CMAES",
        extra="cma",
        needs=("cma",),
    ),
    Method("saas", "Bayesian optimisation under the SAAS prior, parameters at their mode", SAAS, "all", "saas"),
    Method("mcts-vs-saas", "tree-selected variables moved under the SAAS prior", MCTS_VS, "mcts", "saas"),
    Method(
        "saasbo",
        "Bayesian optimisation under the SAAS prior, parameters sampled by NUTS (slow)",
        SAAS,
        "all",
        "saasbo",
    ),
    Method(
        "mcts-vs-saasbo",
        "tree-selected variables moved by SAASBO (slow)",
        MCTS_VS,
        "mcts",
        "saasbo",
    ),
    Method(
        "lasso-bo",
        "the d variables with the largest LASSO coefficients, moved by Bayesian optimisation",
        MCTS_VS,
        "lasso",
        "bo",
        extra="sklearn",
        needs=("sklearn",),
    ),
    Method("hesbo", "a hashed low-dimensional embedding", "Nayebi et al., ICML 2019", engine="engines.embedding:HeSBO"),
    Method("rembo", "a random linear embedding, clipped", "Wang et al., JAIR 2016", engine="engines.embedding:REMBO"),
    Method(
        "alebo", "a linear embedding within its polytope", "Letham et al., NeurIPS 2020", engine="engines.alebo:ALEBO"
    ),
    Method("baxus", "a sparse embedding that grows", "Papenmeier et al., NeurIPS 2022", engine="engines.baxus:BAxUS"),
    Method(
        "optuna-tpe",
        "Optuna's multivariate tree-structured Parzen estimator",
        "Akiba et al., KDD 2019",
        engine="engines.optuna_samplers:OptunaTPE",
        extra="optuna",
        needs=("optuna",),
    ),
    Method(
        "optuna-gp",
        "Optuna's Gaussian process sampler",
        "Akiba et al., KDD 2019",
        engine="engines.optuna_samplers:OptunaGP",
        extra="optuna",
        needs=("optuna", "torch"),
    ),
    Method(
        "vae-bo",
        "Bayesian optimisation in the code space of a variational autoencoder",
        MCTS_VS,
        engine="engines.vae_bo:VAEBO",
        extra="torch",
        needs=("torch",),
    ),
    Method(
        "la-mcts-turbo",
        "a learned partition of the space, searched by TuRBO in its best leaf",
        "Wang et al., NeurIPS 2020",
        engine="engines.la_mcts:LAMCTS",
        extra="sklearn",
        needs=("sklearn",),
    ),
)


def find(name: str) -> Method:
    """The method of that name, or a sentence that says what is there."""
    if not isinstance(name, str) or name not in METHODS:
        close = difflib.get_close_matches(str(name), METHODS, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise InputError(f"unknown method {name!r}: {hint}The methods are {', '.join(METHODS)}")
    return METHODS[name]


def missing(method: Method) -> list[str]:
    """Modules the method needs that are not installed."""
    return [module for module in method.needs if importlib.util.find_spec(module) is None]


def _require(method: Method) -> None:
    absent = missing(method)
    if absent:
        raise InputError(
            f"method {method.name!r} needs {' and '.join(absent)}, not installed here: "
            f"pip install 'mctsvs[{method.extra}]'"
        )


def _engine_class(method: Method) -> Any:
    assert method.engine is not None
    module, _, attribute = method.engine.partition(":")
    return getattr(importlib.import_module(f"mctsvs.{module}"), attribute)


def _options_types(method: Method) -> tuple[type[Options], ...]:
    """Of the engine, or of selector, solver and their engine."""
    if method.engine is not None:
        return (_engine_class(method).options_type,)
    assert method.selector is not None
    assert method.solver is not None
    return select.find(method.selector).options_type, solve.find(method.solver).options_type, SubspaceOptions


def options_of(method: Method) -> tuple[str, ...]:
    """Names of the options a method takes."""
    return tuple(dict.fromkeys(name for kind in _options_types(method) for name in kind.names()))


def make(name: str, offsets: Indices, rng: np.random.Generator, **options: Any) -> Engine:
    """An engine for the variables described by `offsets` (see `Engine`)."""
    method = find(name)
    _require(method)
    allowed = options_of(method)
    for option in options:
        if option not in allowed:
            has = f"it has {', '.join(allowed)}" if allowed else "it has none"
            raise InputError(f"method {name!r} has no option {option!r}: {has}")
    options = {**method.defaults, **options}
    *of_parts, of_engine = (kind.take(options) for kind in _options_types(method))
    if method.engine is not None:
        engine: Engine = _engine_class(method)(offsets, rng, of_engine)
        return engine
    assert method.selector is not None
    assert method.solver is not None
    selector = select.find(method.selector)(len(offsets) - 1, of_parts[0])
    solver = solve.find(method.solver)(of_parts[1])
    return SubspaceEngine(offsets, rng, of_engine, selector=selector, solver=solver)
