"""A problem's functions, compiled where they can be and checked before they are trusted.

Compiled functions have fixed signatures, so that the simulator, compiled once, takes any of them:
a user's own problem runs through the same machine code as a named one.
"""

import warnings
from collections.abc import Callable
from functools import cache
from math import isfinite
from types import FunctionType
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types

from continuarm.box import Box
from continuarm.checks import REAL
from continuarm.core.allowed.compiled import ALLOWED
from continuarm.core.compiling import (
    MATRIX,
    VECTOR,
    Array,
    address_of,
    compile_entry,
    compile_function,
    compiled_allocating,
    function_at,
)
from continuarm.core.maximise import maximise
from continuarm.core.maximise_allowed import maximise_allowed
from continuarm.errors import ProblemError
from continuarm.own_code import OwnCode

__all__ = [
    "Functions",
    "Sources",
    "allowed_entry",
    "best_entry",
    "check_best",
    "gradient_address",
    "gradient_at",
    "maximise_entry",
    "mean_at",
    "mean_entry",
    "prepare",
    "prepare_gradient",
    "sample_at",
]

MEAN = types.float64(VECTOR, VECTOR)
SAMPLE = types.float64(VECTOR, VECTOR, types.npy_rng)
BEST = types.void(VECTOR, VECTOR)
GRADIENT = types.void(VECTOR, VECTOR, VECTOR)
mean_at, sample_at = function_at(MEAN), function_at(SAMPLE)
best_at, gradient_at = function_at(BEST), function_at(GRADIENT)


class Sources(NamedTuple):
    """What the author of a problem wrote."""

    mean_payoff: Callable[..., Any]
    best_decision: Callable[..., Any] | None
    sample_payoff: Callable[..., Any] | None
    gradient: Callable[..., Any] | None


class Functions(NamedTuple):
    """What the simulator calls; where the author wrote none, a stand-in that is never called."""

    mean: Callable[[Array, Array], float]
    best: Callable[[Array, Array], None]
    sample: Callable[[Array, Array, np.random.Generator], float]
    compiled: bool
    addresses: tuple[int, int, int] = (0, 0, 0)  # where compiled code finds them, in this order


def prepare(sources: Sources, decision: Box, contexts: Array) -> Functions:
    """Compile a problem's functions and check them at these contexts and random decisions."""
    plain = _plain(sources, decision)
    points = _points(decision, contexts)
    for x, y in points:
        _check_plain(plain, sources, x, y, decision)
    try:
        for function in sources[:3]:
            if function is not None and not isinstance(_source(function), FunctionType):
                raise numba.core.errors.TypingError(f"{function!r} is not a plain function")
        compiled = _compile(sources, decision.dim)
    except numba.core.errors.NumbaError as error:
        warnings.warn(
            "this problem runs in Python, far slower, because Numba cannot compile "
            f"its functions: {_reason(error)}",
            stacklevel=3,
        )
        return plain
    for x, y in points:
        _compare("mean_payoff", compiled.mean(x, y), plain.mean(x, y), x, y)
        if sources.sample_payoff is not None:
            one, two = np.random.default_rng(1), np.random.default_rng(1)
            fast, slow = compiled.sample(x, y, one), plain.sample(x, y, two)
            _compare("sample_payoff", fast, slow, x, y)
        if sources.best_decision is not None:
            filled = np.empty(decision.dim), np.empty(decision.dim)
            compiled.best(x, filled[0])
            plain.best(x, filled[1])
            _compare("best_decision", *filled, x, y)
    return compiled


def prepare_gradient(
    gradient: Callable[..., Any], decision: Box, contexts: Array, *, compiled: bool
) -> Callable[[Array, Array, Array], None]:
    """The gradient as the simulator calls it, checked in the same way."""
    source = _source(gradient)

    def plain(x: Array, y: Array, out: Array) -> None:
        out[:] = _vector(source, (x, y), "gradient", decision.dim)

    points = _points(decision, contexts)
    for x, y in points:
        _vector(source, (x, y), "gradient", decision.dim)
    if not compiled:
        return plain
    fast: Callable[[Array, Array, Array], None] = _filling_gradient(_inner(gradient), decision.dim)
    for x, y in points:
        filled = np.empty(decision.dim), np.empty(decision.dim)
        fast(x, y, filled[0])
        plain(x, y, filled[1])
        _compare("gradient", *filled, x, y)
    return fast


def _source(function: Any) -> Any:
    """The Python function behind a compiled one."""
    return getattr(function, "py_func", function)


def _points(decision: Box, contexts: Array) -> list[tuple[Array, Array]]:
    units = np.random.default_rng(0).random((len(contexts), decision.dim))
    return list(zip(contexts, decision.from_unit(units), strict=True))


def _plain(sources: Sources, decision: Box) -> Functions:
    mean = _checked("mean_payoff", _source(sources.mean_payoff))
    sample = _checked("sample_payoff", _source(sources.sample_payoff))
    best = sources.best_decision

    def fill_best(x: Array, y: Array) -> None:
        if best is None:
            y[:] = _best_in_python(mean, x, decision)
        else:
            y[:] = _vector(best, (x,), "best_decision", decision.dim)
            check_best(y, x, decision)

    return Functions(mean, fill_best, sample, compiled=False)


def _checked(name: str, function: Any) -> Any:
    """A function of the author that may raise, or return what is no number, at some points."""

    def checked(x: Array, y: Array, *rng: np.random.Generator) -> Any:
        with OwnCode(ProblemError, f"`{name}` must work at every point of the boxes"):
            value = function(x, y, *rng)
        _number(value, name)
        return value

    return checked


def _best_in_python(mean: Callable[..., Any], x: Array, decision: Box) -> Array:
    from scipy.optimize import minimize

    found = minimize(  # type: ignore[call-overload]
        lambda v: -float(mean(x, decision.from_unit(v))),
        [0.5] * decision.dim,
        jac="3-point",
        bounds=[(0.0, 1.0)] * decision.dim,
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 1000},
    )
    return decision.from_unit(found.x)


def _compile(sources: Sources, dy: int) -> Functions:
    mean, best, sample, _ = sources
    found = (
        _jit(mean, MEAN),
        _jit(_no_best, BEST) if best is None else _filling_best(_inner(best), dy),
        _jit(_no_sample if sample is None else sample, SAMPLE),
    )
    one, two, three = (
        address_of(function, signature)
        for function, signature in zip(found, (MEAN, BEST, SAMPLE), strict=True)
    )
    return Functions(*found, compiled=True, addresses=(one, two, three))


def _jit(function: Callable[..., Any], signature: Any) -> Any:
    """Compile for a fixed signature; only our own files are known to hold all that they call."""
    source = _source(function)
    ours = source.__module__.startswith("continuarm.") and source.__closure__ is None
    return compile_function(source, signature, cacheable=ours)


def _inner(function: Callable[..., Any]) -> Any:
    return compiled_allocating(_source(function))


def _filling_best(best: Any, dy: int) -> Any:
    """The author returns an array or a tuple; the simulator gives the place for it."""

    def fill_best(x: Array, y: Array) -> None:
        result = best(x)
        given = len(result)
        for i in range(dy):
            y[i] = result[i] if given == dy else np.nan

    return _jit(fill_best, BEST)


def _filling_gradient(gradient: Any, dy: int) -> Any:
    def fill_gradient(x: Array, y: Array, out: Array) -> None:
        result = gradient(x, y)
        given = len(result)
        for i in range(dy):
            out[i] = result[i] if given == dy else np.nan

    return _jit(fill_gradient, GRADIENT)


def _no_best(x: Array, y: Array) -> None:
    pass


def _no_sample(x: Array, y: Array, rng: np.random.Generator) -> float:
    return 0.0


def gradient_address(gradient: Any) -> int:
    """Where compiled code finds a gradient."""
    return address_of(gradient, GRADIENT)


@cache
def mean_entry() -> Any:
    """Fill the mean payoffs of many contexts and decisions."""

    def entry(mean, contexts, decisions, payoffs):  # type: ignore[no-untyped-def]
        value = mean_at(mean)
        for t in range(contexts.shape[0]):
            payoffs[t] = value(contexts[t], decisions[t])

    return compile_entry(entry, types.void(types.int64, MATRIX, MATRIX, VECTOR))


@cache
def best_entry() -> Any:
    """Fill the declared best decisions of many contexts, and their mean payoffs.

    Returns how many contexts were done: it stops at a decision outside the box.
    """

    def entry(mean, best, low, high, contexts, decisions, payoffs):  # type: ignore[no-untyped-def]
        value, decide = mean_at(mean), best_at(best)
        for t in range(contexts.shape[0]):
            decided = decisions[t]
            decide(contexts[t], decided)
            for i in range(low.shape[0]):
                if not low[i] <= decided[i] <= high[i]:
                    return t
            payoffs[t] = value(contexts[t], decided)
        return contexts.shape[0]

    arrays = VECTOR, VECTOR, MATRIX, MATRIX, VECTOR
    return compile_entry(entry, types.int64(types.int64, types.int64, *arrays))


@cache
def maximise_entry() -> Any:
    """Fill the best decisions of many contexts, found numerically, and their mean payoffs."""

    def entry(mean, low, high, contexts, decisions, payoffs):  # type: ignore[no-untyped-def]
        value = mean_at(mean)
        for t in range(contexts.shape[0]):
            payoffs[t] = maximise(value, contexts[t], low, high, decisions[t])

    arrays = VECTOR, VECTOR, MATRIX, MATRIX, VECTOR
    return compile_entry(entry, types.void(types.int64, *arrays), allocates=True)


@cache
def allowed_entry() -> Any:
    """Fill the best allowed decisions, from those of the box, and their mean payoffs."""

    def entry(mean, free, allowed, contexts, decisions, payoffs):  # type: ignore[no-untyped-def]
        value = mean_at(mean)
        for t in range(contexts.shape[0]):
            payoffs[t] = maximise_allowed(value, contexts[t], free, allowed, decisions[t])

    arrays = ALLOWED, ALLOWED, MATRIX, MATRIX, VECTOR
    return compile_entry(entry, types.void(types.int64, *arrays), allocates=True)


def _check_plain(plain: Functions, sources: Sources, x: Array, y: Array, decision: Box) -> None:
    """The author's functions return what they should and leave their arguments alone."""
    seen_x, seen_y = x.copy(), y.copy()
    plain.mean(x, y)
    if sources.sample_payoff is not None:
        plain.sample(x, y, np.random.default_rng(0))
    if sources.best_decision is not None:
        plain.best(x, np.empty(decision.dim))
    if (x != seen_x).any() or (y != seen_y).any():
        raise ProblemError("the functions of a problem must not change their arguments, but did")


def check_best(best: Array, x: Array, decision: Box) -> None:
    """Refuse a best decision outside its box, or with too few numbers."""
    if not ((decision.low <= best) & (best <= decision.high)).all():
        raise ProblemError(
            f"`best_decision` must lie in {decision}, but got {best.tolist()} at {x.tolist()}"
        )


def _number(value: Any, name: str) -> None:
    if not (isinstance(value, REAL) and isfinite(value)):
        raise ProblemError(f"`{name}` must return a finite number, but got {value!r}")


def _vector(function: Any, arguments: tuple[Array, ...], name: str, size: int) -> Array:
    value = np.asarray(_source(function)(*arguments), np.float64)
    if value.shape != (size,) or not np.isfinite(value).all():
        raise ProblemError(f"`{name}` must return {size} finite numbers, but got {value!r}")
    return value


def _compare(name: str, fast: Any, slow: Any, x: Array, y: Array) -> None:
    """A compiled function does not check bounds: believe it only where Python agrees."""
    if not np.allclose(fast, slow, rtol=1e-9, atol=1e-12):
        raise ProblemError(
            f"`{name}` must give the same compiled and in Python, but got {fast} and {slow} "
            f"at context {x.tolist()}, decision {y.tolist()}"
        )


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if not line.startswith("Failed in")), "unknown")
