"""Methods by name: which selector and solver make them, and which extra they need.

A method of somebody else's is an entry point in the group `mctsvs.methods`, or a name such as `mine.py:Engine`.
Either gives the class of an engine or a `Method`.
"""

from __future__ import annotations

import difflib
import importlib.util
import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mctsvs.methods import presets, selectors, solvers
from mctsvs.methods.base import Engine
from mctsvs.methods.composite import SubspaceEngine
from mctsvs.methods.selectors import Selector
from mctsvs.methods.solvers import Solver
from mctsvs.utils import plugins
from mctsvs.utils.formatting import listed
from mctsvs.utils.options import Options
from mctsvs.utils.validation import Indices, InputError, closest

DEFAULT = "auto"
MCTS_VS = "Song et al., NeurIPS 2022"
DROPOUT = "Li et al., IJCAI 2017"
SAAS = "Eriksson and Jankowiak, UAI 2021"
TURBO = "Eriksson et al., NeurIPS 2019"
BURST = {"burst": 12}  # evaluations of TuRBO on a subset; the MCTS-VS paper allows up to 50, fewer measured better


@dataclass(frozen=True)
class Method:
    """One line of the table of methods: a product of selector and solver, or an engine of its own."""

    name: str
    summary: str = ""
    paper: str = ""
    selector: str | type[Any] | None = None  # a name in `select.SELECTORS`, or a class
    solver: str | type[Any] | None = None  # a name in `solve.SOLVERS`, or a class
    engine: str | type[Any] | None = None  # "module:Class" in mctsvs.methods, or a class, for what is no such product
    extra: str | None = None  # of the package, as in pip install 'mctsvs[extra]'
    needs: tuple[str, ...] = ()  # modules the extra brings
    defaults: Mapping[str, Any] = field(default_factory=dict)  # options this method changes
    several: bool | str | type[Any] = False  # whether it takes several objectives, or the engine that does in its place


def _table(*methods: Method) -> dict[str, Method]:
    return {method.name: method for method in methods}


METHODS: Mapping[str, Method] = _table(
    Method(
        "auto",
        "screens groups of variables, models those that are left, and chooses for itself",
        "this library",
        engine="auto:Auto",
        several="multi_objective:MultiObjective",
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
        defaults={**solvers.DIMENSION_SCALED, "samples": 1, "initial_points": 20},
    ),
    Method(
        "bo-iso",
        "all variables alike: one lengthscale, one bowl, one spectrum; from the centre of the cube",
        "this library",
        "all",
        "iso",
        defaults={**solvers.ISOTROPIC, "samples": 1, "initial_points": 10, "centre": True, "reach": 0.2},
    ),
    Method("turbo", "Bayesian optimisation in a trust region", TURBO, "all", "turbo", defaults=BURST),
    Method(
        "scbo",
        "a trust region with a model of each measured constraint, by Thompson sampling",
        "Eriksson and Poloczek, AISTATS 2021",
        "all",
        "scbo",
        defaults={"samples": 10},
    ),
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
    Method("random", "random search over all variables", "Bergstra and Bengio, 2012", "all", "random", several=True),
    Method(
        "cma-es",
        "evolution strategy with covariance matrix adaptation",
        "Hansen and Ostermeier, 2001",
        engine="rivals.cma_es:CMAES",
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
    Method(
        "hesbo", "a hashed low-dimensional embedding", "Nayebi et al., ICML 2019", engine="rivals.hesbo_rembo:HeSBO"
    ),
    Method("rembo", "a random linear embedding, clipped", "Wang et al., JAIR 2016", engine="rivals.hesbo_rembo:REMBO"),
    Method(
        "alebo", "a linear embedding within its polytope", "Letham et al., NeurIPS 2020", engine="rivals.alebo:ALEBO"
    ),
    Method("baxus", "a sparse embedding that grows", "Papenmeier et al., NeurIPS 2022", engine="rivals.baxus:BAxUS"),
    Method(
        "gtbo",
        "active variables found by group tests around the centre, then one model that knows them",
        "Hellsten et al., arXiv 2310.03515, 2023",
        engine="rivals.gtbo:GTBO",
    ),
    Method(
        "optuna-tpe",
        "Optuna's multivariate tree-structured Parzen estimator",
        "Akiba et al., KDD 2019",
        engine="rivals.optuna_samplers:OptunaTPE",
        extra="optuna",
        needs=("optuna",),
    ),
    Method(
        "optuna-gp",
        "Optuna's Gaussian process sampler",
        "Akiba et al., KDD 2019",
        engine="rivals.optuna_samplers:OptunaGP",
        extra="optuna-gp",
        needs=("optuna", "torch"),
    ),
    Method(
        "vae-bo",
        "Bayesian optimisation in the code space of a variational autoencoder",
        MCTS_VS,
        engine="rivals.vae_bo:VAEBO",
        extra="torch",
        needs=("torch",),
    ),
    Method(
        "la-mcts-turbo",
        "a learned partition of the space, searched by TuRBO in its best leaf",
        "Wang et al., NeurIPS 2020",
        engine="rivals.la_mcts:LAMCTS",
        extra="sklearn",
        needs=("sklearn",),
    ),
)


ALIASES = {"mcts-vs": "mcts-vs-bo"}  # the paper's method is MCTS-VS with Bayesian optimisation


def canonical(name: str) -> str:
    """The name under which a method is listed."""
    return ALIASES.get(name, name) if isinstance(name, str) else name


def find(name: str) -> Method:
    """The method of that name, or a sentence that says what is there."""
    if not isinstance(name, str):
        raise InputError(f"method {name!r:.60} cannot be used: give a name, or a text such as 'mine.py:Engine'")
    name = canonical(name)
    if name in METHODS:
        return METHODS[name]
    found = _outside(name, name) if plugins.is_spec(name) else PACKAGES.find(name)
    if found is None:
        known = [*METHODS, *ALIASES, *PACKAGES.names()]
        meant = closest(name, known)
        hint = f"did you mean {meant!r}? " if meant else ""
        raise InputError(f"unknown method {name!r}: {hint}The methods are {', '.join(known)}")
    return found


def available() -> tuple[dict[str, Method], list[str]]:
    """All methods by name, those of installed packages too, and a sentence on each of these that cannot be used."""
    found, complaints = PACKAGES.all(built_in=METHODS)
    return {**METHODS, **found}, complaints


def _outside(name: str, spec: str) -> Method:
    """Somebody else's method; it is called what it was asked for by, and checked."""
    value = plugins.load(spec, "method")
    if isinstance(value, Method):
        method = replace(value, name=name)
    else:
        summary = (inspect.getdoc(value) or "").partition("\n")[0]
        method = Method(name, summary, engine=value)
    if not missing(method):
        _classes(method)
    return method


PACKAGES = plugins.Group("mctsvs.methods", "method", _outside)


def missing(method: Method) -> list[str]:
    """Modules the method needs that are not installed."""
    return [module for module in method.needs if importlib.util.find_spec(module) is None]


def option_types(method: Method) -> list[type[Options]]:
    """The classes of the options a method takes."""
    return [kind.options_type for kind in _classes(method)]


def options_of(method: Method) -> tuple[str, ...]:
    """Names of the options a method takes; `settings` names a set of them (`mctsvs.methods.presets`)."""
    return (*dict.fromkeys(name for kind in option_types(method) for name in kind.names()), "settings")


def advertised(method: Method) -> list[str]:
    """Names of the options a message may suggest: all but switches of experiments."""
    return [*(name for kind in option_types(method) if kind.advertised for name in kind.names()), "settings"]


def check(name: str | Method, options: Iterable[str], arguments: Sequence[str] = ()) -> Method:
    """The method, if it is installed and has these options; `arguments` may be meant by an unknown one."""
    method = name if isinstance(name, Method) else find(name)
    name = method.name if isinstance(name, Method) else name
    if absent := missing(method):
        source = " ".join(absent) if method.extra is None else f"'mctsvs[{method.extra}]'"
        raise InputError(f"method {name!r} needs {' and '.join(absent)}, not installed here: pip install {source}")
    allowed = options_of(method)
    for option in options:
        if option not in allowed:
            meant = difflib.get_close_matches(option, [*arguments, *advertised(method)], n=1, cutoff=0.75)
            if meant and meant[0] in arguments:
                raise InputError(f"there is no argument {option!r} here: did you mean {meant[0]}=?")
            hint = f"did you mean {meant[0]!r}?" if meant else f"mctsvs methods {method.name} lists its options"
            raise InputError(f"method {name!r} has no option {option!r}: {hint}")
    return method


def for_several(name: str) -> Method:
    """The method of that name for several objectives, if there is one."""
    method = find(name)
    if isinstance(method.several, str | type):
        return replace(method, engine=method.several, selector=None, solver=None)
    own = method.name not in METHODS and not missing(method)
    if not method.several and not (own and _classes(method)[-1].several_objectives):
        able = listed([f"{other.name!r}" for other in METHODS.values() if other.several])
        raise InputError(f"method {name!r} takes one objective only: several objectives need {able}")
    return method


def make(name: str, offsets: Indices, rng: np.random.Generator, *, several: bool = False, **options: Any) -> Engine:
    """An engine for the variables described by `offsets` (see `Engine`), for one objective or for several."""
    method = check(for_several(name) if several else name, options)
    *parts, engine = _classes(method)
    named = presets.options(options.get("settings", presets.DEFAULT), method.name)
    chosen = {**method.defaults, **named, **options}
    *of_parts, of_engine = (kind.options_type.take(chosen) for kind in (*parts, engine))
    more = {}
    if parts:
        more = {"selector": parts[0](len(offsets) - 1, of_parts[0]), "solver": parts[1](of_parts[1])}
    made: Engine = engine(offsets, rng, of_engine, **more)
    return made


def _classes(method: Method) -> tuple[type[Any], ...]:
    """The engine, or selector, solver and their engine."""
    selector, solver, engine = method.selector, method.solver, method.engine
    if engine is not None:
        found = plugins.load(f"mctsvs.methods.{engine}") if isinstance(engine, str) else engine
        return (_check(found, Engine, "offsets, rng, options"),)
    if selector is None or solver is None:
        raise InputError(f"method {method.name!r} is incomplete: give it an engine, or a selector and a solver")
    return (
        _check(selectors.find(selector) if isinstance(selector, str) else selector, Selector, "n_variables, options"),
        _check(solvers.find(solver) if isinstance(solver, str) else solver, Solver, "options"),
        SubspaceEngine,
    )


def _check(kind: Any, base: type[Any], arguments: str) -> type[Any]:
    """The class, if it is an engine, or has what the protocol of a selector or solver asks for."""
    if not isinstance(kind, type):
        raise InputError(f"{kind!r:.60} is no {base.__name__}: give a class, or a Method")
    if base is Engine:
        if not issubclass(kind, Engine):
            raise InputError(f"the class {kind.__name__!r} is no Engine: derive it from mctsvs.methods.base.Engine")
        lacks = sorted(kind.__abstractmethods__)
    else:
        lacks = [name for name, stub in vars(base).items() if name[0] != "_" and getattr(kind, name, stub) is stub]
    options_type = getattr(kind, "options_type", None)
    if not (isinstance(options_type, type) and issubclass(options_type, Options)):
        lacks.append("options_type (a subclass of mctsvs.utils.options.Options)")
    try:
        inspect.signature(kind).bind(*arguments.split(", "))
    except TypeError:
        lacks.append(f"a constructor ({arguments})")
    if lacks:
        raise InputError(f"the class {kind.__name__!r} is no {base.__name__}: it lacks {', '.join(lacks)}")
    checked: type[Any] = kind
    return checked
