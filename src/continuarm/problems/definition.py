"""Problem: a simulated world of contexts, decisions and payoffs."""

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from continuarm.box import Box
from continuarm.checks import number
from continuarm.core.compiling import Array
from continuarm.errors import ProblemError, SettingsError
from continuarm.own_code import OwnCode
from continuarm.problems.feedback import AT_ONCE, feedback
from continuarm.problems.functions import (
    Functions,
    Sources,
    allowed_entry,
    best_entry,
    check_best,
    gradient_address,
    maximise_entry,
    mean_entry,
    prepare,
    prepare_gradient,
)
from continuarm.sets import allowed_of, is_guarded

__all__ = ["Problem"]

Contexts = Callable[[np.random.Generator, int], Array]
Disturbance = Callable[[np.random.Generator, NDArray[np.int64], Array], Array]
Prepared = TypeVar("Prepared")
CHECKED = 8  # contexts at which a new problem's functions are tried


class Problem:
    """A simulated world: boxes, mean payoff, noise, contexts and the best decision.

    The functions are plain Python functions of 1-D arrays in the boxes' units. They are compiled
    when they can be, and run in Python, with a warning, when not.

    Parameters
    ----------
    context, decision : the boxes.
    mean_payoff : `(x, y) -> number`, concave in `y` for the paper's guarantees.
    best_decision : `x -> dy numbers`; found numerically when missing.
    sample_payoff : `(x, y, rng) -> number`, one random payoff with that mean. When missing, the
        payoff is the mean plus Gaussian noise.
    gradient : `(x, y) -> dy numbers`, the derivative of the mean payoff by `y`.
    curvature, curvature_max : M1 and M5, the smallest and largest curvature on the unit cube.
    noise : standard deviation of the Gaussian noise, at least 0.
    contexts : `"uniform"`, or `(rng, n) -> (n, dx)` points of the context box.
    disturbance : what is added to payoffs whatever is decided: `(rng, i, x) -> n numbers` for
        the decisions number `i`, from 0 on, and their contexts `x`. Regret does not count it.
    name : what tables and figures call it.

    >>> def profit(x, y):
    ...     return -((y[0] - 2 * x[0]) ** 2)
    >>> world = Problem(context=Box([0], [1]), decision=Box([0], [5]), mean_payoff=profit)
    >>> world.best_decision([0.5]).round(6)
    array([1.])
    """

    def __init__(
        self,
        *,
        context: Box,
        decision: Box,
        mean_payoff: Callable[..., Any],
        best_decision: Callable[..., Any] | None = None,
        sample_payoff: Callable[..., Any] | None = None,
        gradient: Callable[..., Any] | None = None,
        curvature: float | None = None,
        curvature_max: float | None = None,
        noise: float = 0.1,
        contexts: Literal["uniform"] | Contexts = "uniform",
        disturbance: Disturbance | None = None,
        name: str = "problem",
    ) -> None:
        for option, box in (("context", context), ("decision", decision)):
            if not isinstance(box, Box):
                raise SettingsError(f"`{option}` must be a Box, but got {box!r}")
        if decision.dim == 0:
            raise SettingsError("`decision` must have at least one dimension, but got 0")
        noise = number("noise", noise, zero=True)
        for option, bound in (("curvature", curvature), ("curvature_max", curvature_max)):
            if bound is not None:
                number(option, bound)
        if not callable(contexts) and contexts != "uniform":
            raise SettingsError(
                f'`contexts` must be "uniform" or a function, but got {contexts!r}'
            )
        if disturbance is not None and not callable(disturbance):
            raise SettingsError(f"`disturbance` must be a function, but got {disturbance!r}")
        self.context, self.decision = context, decision
        self.curvature, self.curvature_max = curvature, curvature_max
        self.noise, self.name = float(noise), name
        self.sources = Sources(mean_payoff, best_decision, sample_payoff, gradient)
        for option, function in self.sources._asdict().items():
            if function is not None and not callable(function):
                raise SettingsError(f"`{option}` must be a function, but got {function!r}")
        self.feedback = AT_ONCE
        self._contexts, self._disturbance = contexts, disturbance
        self._functions: Functions | None = None
        self._fill_gradient: Callable[[Array, Array, Array], None] | None = None

    def __repr__(self) -> str:
        return f"<Problem {self.name}: dx={self.context.dim}, dy={self.decision.dim}>"

    @property
    def knowledge(self) -> dict[str, Any]:
        """What a policy that is made for this problem may be told of it."""
        bounds = {"curvature": self.curvature, "curvature_max": self.curvature_max}
        return {"problem": self, **bounds}

    def with_noise(self, noise: float) -> "Problem":
        """The same problem with another standard deviation of its additive noise."""
        if self.sources.sample_payoff is not None:
            raise SettingsError(f"{self.name} draws its own payoffs, but got noise={noise}")
        other = Problem(
            context=self.context,
            decision=self.decision,
            **self.sources._asdict(),
            curvature=self.curvature,
            curvature_max=self.curvature_max,
            noise=noise,
            contexts=self._contexts,
            disturbance=self._disturbance,
            name=self.name,
        )
        other.feedback = self.feedback
        return other

    def with_feedback(
        self, *, delay: int | Callable[..., Any] = 0, lost: float = 0.0
    ) -> "Problem":
        """The same problem with payoffs that come late, in another order, or never.

        Parameters
        ----------
        delay : how many decisions are made between a decision and its payoff: a number, a
            function `(rng, n) -> n numbers`, or a distribution of scipy.stats.
        lost : the probability that a payoff never comes, whatever it is.

        >>> world = Problem(context=Box.unit(1), decision=Box.unit(1), mean_payoff=lambda x, y: 0)
        >>> world.with_feedback(delay=100, lost=0.2).feedback
        Feedback(delay=100, lost=0.2)
        """
        other = copy(self)
        other.feedback = feedback(delay, lost)
        return other

    def allowing(self, decision: Box) -> "Problem":
        """The same problem where only some decisions of its box are allowed.

        decision : a `Polytope`, or a `Box` with a spacing, that has the edges of the problem's
            own. The best decision is the best allowed one, which is found numerically.

        >>> def profit(x, y):
        ...     return -((y[0] - 0.3) ** 2)
        >>> world = Problem(context=Box.unit(0), decision=Box.unit(1), mean_payoff=profit)
        >>> world.allowing(Box([0], [1], spacing=0.25)).best_decision([])
        array([0.25])
        """
        if not isinstance(decision, Box) or not self.decision.same_edges(decision):
            raise SettingsError(
                f"what is allowed must be a set in {self.decision!r}, but got {decision!r}"
            )
        other = copy(self)
        other.decision = decision
        return other

    @property
    def functions(self) -> Functions:
        """The functions as the simulator calls them, compiled and checked on first use."""
        if self._functions is None:
            self._functions = self._prepared(
                lambda trial: prepare(self.sources, self.decision, trial)
            )
        return self._functions

    @property
    def fill_gradient(self) -> Callable[[Array, Array, Array], None]:
        """The gradient as the simulator calls it."""
        source, compiled = self.sources.gradient, self.functions.compiled
        if source is None:
            raise ProblemError(f"a `gradient` is needed, but {self.name} has none")
        if self._fill_gradient is None:
            self._fill_gradient = self._prepared(
                lambda trial: prepare_gradient(source, self.decision, trial, compiled=compiled)
            )
        return self._fill_gradient

    @property
    def promise(self) -> str:
        """What its functions break that raise."""
        return f"the functions of {self.name} must work at every point of its boxes"

    def _prepared(self, prepare_at: Callable[[Array], Prepared]) -> Prepared:
        trial = self.draw_contexts(np.random.default_rng(0), CHECKED)
        with OwnCode(ProblemError, self.promise):
            return prepare_at(trial)

    def addresses(self, *, sloped: bool) -> tuple[int, int, int]:
        """Where compiled code finds the mean payoff, the random payoff and the gradient."""
        mean, _, sample = self.functions.addresses
        return mean, sample, gradient_address(self.fill_gradient) if sloped else 0

    @property
    def has_gradient(self) -> bool:
        """Whether the problem can serve a policy that wants gradients."""
        return self.sources.gradient is not None

    def draw_contexts(self, rng: np.random.Generator, n: int) -> Array:
        """`n` contexts in the box's units, shape `(n, dx)`."""
        if not callable(self._contexts):
            return self.context.from_unit(rng.random((n, self.context.dim)))
        with OwnCode(ProblemError, f"`contexts(rng, {n})` must give numbers"):
            drawn = np.ascontiguousarray(self._contexts(rng, n), np.float64)
        if drawn.shape != (n, self.context.dim):
            raise ProblemError(
                f"`contexts(rng, {n})` must have shape {(n, self.context.dim)}, "
                f"but got {drawn.shape}"
            )
        if not ((self.context.low <= drawn) & (drawn <= self.context.high)).all():
            raise ProblemError(f"`contexts` must draw points of {self.context}, but did not")
        return drawn

    def disturb(self, rng: np.random.Generator, first: int, contexts: Array) -> Array:
        """What is added to the payoffs of the decisions from number `first` on."""
        if self._disturbance is None:
            return np.zeros(len(contexts))
        numbers = np.arange(first, first + len(contexts))
        with OwnCode(ProblemError, "`disturbance(rng, i, x)` must give numbers"):
            added = np.ascontiguousarray(self._disturbance(rng, numbers, contexts), np.float64)
        if added.shape != numbers.shape or not np.isfinite(added).all():
            raise ProblemError(
                f"`disturbance` must give {len(numbers)} finite numbers, but got {added!r}"
            )
        return added

    def mean_payoff(
        self, context: ArrayLike | Mapping[str, float], decision: ArrayLike | Mapping[str, float]
    ) -> float:
        """The mean payoff of a decision; refused when it lies outside its box."""
        x, y = self.context.point(context), self.decision.point(decision)
        return float(self.functions.mean(x, y))

    def gradient(
        self, context: ArrayLike | Mapping[str, float], decision: ArrayLike | Mapping[str, float]
    ) -> Array:
        """The derivative of the mean payoff by the decision."""
        x, y = self.context.point(context), self.decision.point(decision)
        out = np.empty(self.decision.dim)
        self.fill_gradient(x, y, out)
        return out

    def payoff(
        self,
        context: ArrayLike | Mapping[str, float],
        decision: ArrayLike | Mapping[str, float],
        rng: np.random.Generator,
    ) -> float:
        """One random payoff of a decision."""
        x, y = self.context.point(context), self.decision.point(decision)
        if self.sources.sample_payoff is not None:
            return float(self.functions.sample(x, y, rng))
        return float(self.functions.mean(x, y)) + self.noise * rng.standard_normal()

    def best_decision(self, context: ArrayLike | Mapping[str, float]) -> Array:
        """The decision with the highest mean payoff for this context."""
        return np.asarray(self.best_many(self.context.point(context)[None, :])[0][0])

    def best_payoff(self, context: ArrayLike | Mapping[str, float]) -> float:
        """The mean payoff of the best decision."""
        return float(self.best_many(self.context.point(context)[None, :])[1][0])

    @property
    def searches(self) -> bool:
        """Whether the best decision is found numerically."""
        return self.sources.best_decision is None or is_guarded(self.decision)

    def best_many(self, contexts: Array) -> tuple[Array, Array]:
        """Best decisions `(n, dy)` and their mean payoffs `(n,)` for contexts `(n, dx)`."""
        functions, bounds = self.functions, (self.decision.low.copy(), self.decision.high.copy())
        decisions, payoffs = np.empty((len(contexts), self.decision.dim)), np.empty(len(contexts))
        guard = allowed_of(self.decision)
        arrays = *bounds, contexts, decisions, payoffs
        with OwnCode(ProblemError, self.promise):
            if not functions.compiled:
                if guard.guarded:
                    raise ProblemError(
                        "where decisions are guarded, a problem's functions must be compiled, "
                        f"but those of {self.name} cannot be"
                    )
                for t, x in enumerate(contexts):
                    functions.best(x, decisions[t])
                    payoffs[t] = functions.mean(x, decisions[t])
            elif self.sources.best_decision is not None:
                reached = best_entry()(*functions.addresses[:2], *arrays)
                if reached < len(contexts):
                    check_best(decisions[reached], contexts[reached], self.decision)
            else:
                maximise_entry()(functions.addresses[0], *arrays)
            if guard.guarded:
                free = guard._replace(spaced=False)
                allowed_entry()(functions.addresses[0], free, guard, *arrays[2:])
        return decisions, payoffs

    def mean_many(self, contexts: Array, decisions: Array) -> Array:
        """The mean payoffs `(n,)` of decisions `(n, dy)` for contexts `(n, dx)`."""
        functions, payoffs = self.functions, np.empty(len(contexts))
        with OwnCode(ProblemError, self.promise):
            if functions.compiled:
                mean_entry()(functions.addresses[0], contexts, decisions, payoffs)
            else:
                for t, (x, y) in enumerate(zip(contexts, decisions, strict=True)):
                    payoffs[t] = functions.mean(x, y)
        return payoffs
