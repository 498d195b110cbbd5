"""BinnedPolicy: partition × learner behind `ask`, `tell` and `recommend`."""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from threading import Lock
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from continuarm import checks, jit, saved_file
from continuarm.box import Box, to_unit
from continuarm.decision import Bin, Decision, Decisions
from continuarm.engine import Engine
from continuarm.errors import InputError, SettingsError
from continuarm.jit import Array
from continuarm.policies import exporting, logs, saving
from continuarm.policies.inputs import decision_ids, finite, listed
from continuarm.policies.open_decisions import TTL, OpenDecisions

__all__ = ["BinnedPolicy", "Hints", "Policy"]

EMPTY: Array = np.empty(0)
MOST_DIMENSIONS = 2**19  # a ticket counts the slots of a stencil


class Policy(Protocol):
    """What every policy can do; your own needs only these two."""

    def ask(self, context: Any, /) -> Any:
        """A decision for this context: a `Decision`, or anything that `tell` takes back."""

    def tell(self, decision: Any, payoff: float, /) -> None:
        """Learn the payoff of a decision."""


class Hints(Protocol):
    """What a policy may be told about the world it is simulated in."""

    @property
    def curvature(self) -> float | None: ...

    @property
    def curvature_max(self) -> float | None: ...


class BinnedPolicy(ABC):
    """Partition × learner behind `ask`, `tell` and `recommend`.

    A named policy is a subclass that says in `_design` which partition and which learner it
    wants. What that needs may be missing at first (`simulate` fills it in from the problem), so
    the engine is built when it is first used.

    Every policy takes these options as well:

    ttl : decisions of the policy after which a payoff is not waited for any more; None: for ever.
    ttl_seconds : the same in the caller's time, the `now` of `ask`.
    missing : the payoff of a decision whose time is up; payoffs told before are learned then, too,
        because those alone would be a biased sample. Without it the decision is forgotten, and
        what it would have taught is asked again.
    """

    anytime = False  # whether it never asks for the horizon
    largest_payoff = np.inf

    context: Box
    decision: Box
    settings: dict[str, Any]
    _engine: Engine | None
    _rng: np.random.Generator
    _open: OpenDecisions
    _lock: Lock

    def __init__(
        self,
        context: Box,
        decision: Box,
        *,
        start: ArrayLike | Mapping[str, float] | None,
        rng: np.random.Generator | int | None,
        settings: dict[str, Any],
        ttl: int | None = TTL,
        ttl_seconds: float | None = None,
        missing: float | None = None,
    ) -> None:
        for option, box in (("context", context), ("decision", decision)):
            if not isinstance(box, Box):
                raise SettingsError(f"`{option}` must be a Box, but got {box!r}")
        if not 1 <= decision.dim <= MOST_DIMENSIONS:
            raise SettingsError(
                f"`decision` must have 1 to {MOST_DIMENSIONS} dimensions, but got {decision.dim}"
            )
        self.context, self.decision = context, decision
        self._open = OpenDecisions(ttl, ttl_seconds)
        self.missing = None if missing is None else self._missing(missing)
        if missing is not None and ttl in (TTL, None) and ttl_seconds is None:
            raise SettingsError(
                "`ttl` or `ttl_seconds` is needed with `missing`: after how long is it silence? "
                "But got neither"
            )
        self.settings = dict(settings)
        if ttl != TTL:
            self.settings["ttl"] = self._open.ttl
        if ttl_seconds is not None:
            self.settings["ttl_seconds"] = self._open.ttl_seconds
        if missing is not None:
            self.settings["missing"] = self.missing
        if start is None:
            self._start = np.full(decision.dim, 0.5)
        else:
            first = decision.point(start)
            self._start = decision.to_unit(first)
            self.settings["start"] = first.tolist()
        self._rng = checks.generator(rng)
        self._engine = None
        self.__setstate__({})

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return vars(self._copied()) | {}

    def _copied(self) -> Self:
        """A copy without a lock; the caller holds this one's."""
        other = object.__new__(type(self))
        vars(other).update({name: value for name, value in vars(self).items() if name != "_lock"})
        other._engine = None if self._engine is None else self._engine.copy()
        other._open = self._open.copy()
        return other

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=Lock())
        boxes = self.context, self.decision
        self._bounds = tuple(np.array(edge) for box in boxes for edge in (box.low, box.high))

    def __copy__(self) -> Self:
        return self.copy()

    @abstractmethod
    def _design(self, horizon: int | None, hints: Hints | None) -> tuple[Any, Any]:
        """The configurations of partition and learner."""

    def prepare(self, horizon: int | None, hints: Hints | None) -> None:
        """Build the engine, if it is not there yet, with what a simulation knows."""
        if self._engine is None:
            self._engine = Engine(*self._design(horizon, hints), self._start)

    @property
    def engine(self) -> Engine:
        """The arrays behind the policy, on the unit cube."""
        if self._engine is None:
            self.prepare(None, None)
        assert self._engine is not None
        return self._engine

    def describe(self) -> dict[str, Any]:
        """What the options came to: the configurations of partition and learner as numbers."""
        with self._lock:
            parts = {"partition": self.engine.pcfg, "learner": self.engine.lcfg}
        return {role: {"kind": type(cfg).__name__} | jit.plain(cfg) for role, cfg in parts.items()}

    def __repr__(self) -> str:
        options = ", ".join(f"{k}={v!r}" for k, v in self.settings.items() if v is not None)
        return f"{type(self).__name__}({self.context}, {self.decision}, {options})"

    def copy(self, rng: np.random.Generator | int | None = None) -> Self:
        """An independent policy in the same state, with other random numbers if given."""
        with self._lock:
            other = self._copied()
            drawn = self._rng.bit_generator.state
        other._lock = Lock()
        if rng is None:
            other._rng = np.random.Generator(type(self._rng.bit_generator)())
            other._rng.bit_generator.state = drawn
        else:
            other._rng = checks.generator(rng)
        return other

    def ask(
        self, context: ArrayLike | Mapping[str, float] = (), *, now: float | None = None
    ) -> Decision:
        """A decision for this context; it may explore.

        `now` is the caller's time in seconds, for `ttl_seconds`; default `time.time()`.
        """
        with self._lock:
            return self._ask(context, self._open.time(now))

    def _ask(self, context: ArrayLike | Mapping[str, float], now: float) -> Decision:
        engine = self.engine
        given = self.context.array(context)
        x, y, value = np.empty(engine.dx), np.empty(engine.dy), np.empty(engine.dy)
        low, high, decision_low, decision_high = self._bounds
        outside = to_unit(low, high, given, x)
        if outside >= 0:
            self.context.refuse(given, outside)
        for overdue in self._open.due(now):
            self._give_up(overdue)
        xi = self._rng.standard_normal(engine.draws) if engine.draws else EMPTY
        row, ticket = engine.ask(x, xi, y, decision_low, decision_high, value)
        value.flags.writeable = False  # it is kept to recognise the decision
        id_ = self._open.add((row, ticket, x, y, value, now))
        return Decision(id_, given, value, self.decision.names, self._open.token)

    def tell(
        self, decision: Decision | int, payoff: float, *, gradient: ArrayLike | None = None
    ) -> None:
        """Learn the payoff of a decision, in any order; each decision once."""
        with self._lock:
            self._tell(
                self._open.number_of(decision), self._payoff(payoff), self._gradient(gradient)
            )

    def forget(self, decision: Decision | int) -> None:
        """A payoff will never come: what the decision would have taught may be asked again."""
        with self._lock:
            self._forget(self._open.number_of(decision))

    def expire(self, now: float | None = None) -> int:
        """Give up on the decisions whose time to live is over, as `ask` does; how many it were."""
        with self._lock:
            due = self._open.due(self._open.time(now))
            for overdue in due:
                self._give_up(overdue)
        return len(due)

    def forget_all(self) -> None:
        """Forget every open decision, the oldest first; learn what `missing` has held back."""
        with self._lock:
            for id_ in list(self._open.waiting):
                if id_ in self._open.held:
                    self._give_up(id_)
                else:
                    self._forget(id_)

    @property
    def ttl(self) -> int | None:
        """Decisions after which a payoff is not waited for any more."""
        return self._open.ttl

    @property
    def ttl_seconds(self) -> float | None:
        """The same in the caller's time."""
        return self._open.ttl_seconds

    @property
    def open_decisions(self) -> int:
        """How many decisions wait for their payoff."""
        return len(self._open.waiting) - len(self._open.held)

    def _give_up(self, id_: int) -> None:
        if self.missing is None:
            self._forget(id_)
        else:
            self._learn(id_, self._open.held.pop(id_, self.missing), EMPTY)

    def _forget(self, id_: int) -> None:
        row, ticket, x, y, _, _ = self._open.waiting.pop(id_)
        self.engine.forget(row, ticket, x, y)

    def recommend(self, context: ArrayLike | Mapping[str, float] = ()) -> Array:
        """The best decision known now; explores nothing and changes nothing."""
        return np.asarray(self.recommend_many(self.context.point(context)[None, :])[0])

    def ask_many(self, contexts: ArrayLike, *, now: float | None = None) -> Decisions:
        """Decisions for contexts of shape `(n, dx)`, as if asked one after the other."""
        points = self.context.points(contexts)
        with self._lock:
            at = self._open.time(now)
            decisions = [self._ask(point, at) for point in points]
        return Decisions(
            np.array([d.id for d in decisions], np.int64),
            points,
            np.array([d.value for d in decisions]).reshape(len(points), self.decision.dim),
            self._open.token,
        )

    def tell_many(
        self,
        decisions: Decisions | ArrayLike,
        payoffs: ArrayLike,
        *,
        gradients: ArrayLike | None = None,
    ) -> None:
        """Learn many payoffs, as if told one after the other; all of them or none."""
        with self._lock:
            self._tell_many(decisions, payoffs, gradients)

    def _tell_many(
        self, decisions: Decisions | ArrayLike, payoffs: ArrayLike, gradients: ArrayLike | None
    ) -> None:
        token = decisions.policy if isinstance(decisions, Decisions) else None
        ids = [self._open.number_of(id_, token) for id_ in decision_ids(decisions)]
        values = [self._payoff(payoff) for payoff in listed(payoffs)]
        if len(values) != len(ids) or len(set(ids)) < len(ids):
            raise InputError(
                f"{len(ids)} different decisions need as many payoffs, but got "
                f"{len(set(ids))} different decisions and {len(values)} payoffs"
            )
        slopes = [None] * len(ids) if gradients is None else listed(gradients)
        if len(slopes) != len(ids):
            raise InputError(f"{len(ids)} gradients are needed, but got {len(slopes)}")
        for id_, value, slope in zip(
            ids, values, [self._gradient(slope) for slope in slopes], strict=True
        ):
            self._tell(id_, value, slope)

    def recommend_many(self, contexts: ArrayLike) -> Array:
        """The best decisions known now for contexts of shape `(n, dx)`."""
        units = self.context.to_unit(self.context.points(contexts))
        with self._lock:
            best = self.engine.recommend(np.ascontiguousarray(units))
        return self.decision.from_unit(best)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of it to one file, open decisions and random numbers included, for `load`."""
        with self._lock:
            state = saving.gathered(self)
        saved_file.write(path, *state)

    def export(self) -> str:
        """What it has learned as a table in JSON, from which `continuarm.reader` decides."""
        with self._lock:
            return exporting.export(type(self).__name__, self.context, self.decision, self.engine)

    def learn_from(self, table: Any, *, payoff: str = "payoff") -> None:
        """Start from the log of an older rule: one row per decision, in the order of time.

        Parameters
        ----------
        table : columns by name (a dictionary of sequences, or a data frame of polars or pandas):
            the names of the context, of the decision, and `payoff`. No propensities are needed.
        payoff : the name of the payoffs' column.
        """
        x, y, z = logs.log_columns(table, payoff, self.context, self.decision)
        payoffs = np.array([self._payoff(value) for value in z.tolist()])
        if len(payoffs):
            units = self.context.to_unit(x), self.decision.to_unit(y)
            with self._lock:
                logs.learn(self.engine, self._start, *units, payoffs)

    def bins(self) -> list[Bin]:
        """The bins that have been visited and not split, in the order in which they were made."""
        with self._lock:
            found = self.engine.bins()
        return [
            Bin(
                self.context.from_unit(b.low),
                self.context.from_unit(b.high),
                b.level,
                b.asked,
                b.told,
                b.progress,
                self.decision.from_unit(b.best),
            )
            for b in found
        ]

    def _missing(self, missing: Any) -> float:
        try:
            return self._payoff(missing)
        except InputError:
            raise SettingsError(f"`missing` must be a payoff, but got {missing!r}") from None

    def _payoff(self, payoff: Any) -> float:
        value = finite(payoff)
        if abs(value) > self.largest_payoff:
            raise InputError(
                f"the payoff must be within ±{self.largest_payoff:g}, but got {payoff!r}"
            )
        return value

    def _gradient(self, gradient: ArrayLike | None) -> Array:
        if not self.engine.uses_gradient:
            if gradient is not None:
                raise InputError(f"{type(self).__name__} takes no gradient, but got {gradient!r}")
            return EMPTY
        if gradient is None:
            raise InputError(f"{type(self).__name__} needs a gradient, but got None")
        slope = self.decision.array(gradient)
        if not np.isfinite(slope).all():
            raise InputError(f"the gradient must be finite, but got {slope.tolist()}")
        return slope * self.decision.span

    def _tell(self, id_: int, payoff: float, gradient: Array) -> None:
        if self.missing is None:
            self._learn(id_, payoff, gradient)
        else:  # payoffs that come before silence is known to be silence would be a biased sample
            self._open.held[id_] = payoff

    def _learn(self, id_: int, payoff: float, gradient: Array) -> None:
        row, ticket, x, y, _, _ = self._open.waiting.pop(id_)
        self.engine.tell(row, ticket, x, y, payoff, gradient)
