"""Policy: partition × learner behind `ask`, `tell` and `recommend`.

The shell around a life: it has what only a process has, the lock, the clock and the token that
marks its decisions. `ask` and `tell` make an event and apply it.
"""

import os
import time
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from continuarm import checks
from continuarm.box import Box
from continuarm.core import compiling
from continuarm.core.compiling import Array
from continuarm.core.learners.protocol import LearnerOptions
from continuarm.core.partitions.protocol import PartitionOptions
from continuarm.errors import (
    AlreadyToldError,
    ContinuarmError,
    ExpiredDecisionError,
    InputError,
    SavedFileError,
    SettingsError,
    UnknownDecisionError,
)
from continuarm.live import checked_events, events, saved_file, state, warm_start
from continuarm.live.closings import EXPIRED, FORGOTTEN, TOLD, Stats
from continuarm.live.decision import Bin, Decision, Decisions
from continuarm.live.export import export
from continuarm.live.gate import Gate, keep_through_forks
from continuarm.live.inputs import decision_ids, finite, key_of, listed
from continuarm.live.life import Beginning, Life, new
from continuarm.live.open_decisions import TTL, Waiting
from continuarm.live.registry import brief
from continuarm.live.tokens import Tokens

__all__ = ["Policy", "load"]

MOST_DIMENSIONS = 2**19  # a ticket counts the slots of a stencil
FAR = 1e300  # seconds
WHOLE = (int, np.integer)
REASONS: dict[type[Exception], str] = {
    AlreadyToldError: "already told",
    ExpiredDecisionError: "expired",
    UnknownDecisionError: "unknown decision",
    InputError: "bad input",
    ContinuarmError: "other",
}

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
Context = ArrayLike | Mapping[str, float]
Contexts = ArrayLike | Mapping[str, ArrayLike]
Rows = Contexts | None
Many = Decisions | ArrayLike


def _counting_refusals(
    method: Callable[Concatenate["Policy", Given], Answer],
) -> Callable[Concatenate["Policy", Given], Answer]:
    """Count what a method refuses; where every microsecond counts it is written out."""

    @wraps(method)
    def counted(self: "Policy", /, *args: Given.args, **options: Given.kwargs) -> Answer:
        try:
            return method(self, *args, **options)
        except ContinuarmError as error:
            self._count_refused(error)
            raise

    return counted


class Policy:
    """A partition of the contexts × a learner in each bin.

    Parameters
    ----------
    context, decision : the boxes; a context box without dimensions makes it context-free.
    partition : `Grid`, `Tree`, `EvidenceTree`, or one of your own.
    learner : `KieferWolfowitz`, `GradientAscent`, `GridUCB`, `ResponseSurface`, or your own.
    start : the decision that is made today; default the centre of the box.
    ttl : decisions of the policy after which a payoff is not waited for any more; None: for ever.
    ttl_seconds : the same in the caller's time, the `now` of `ask`.
    missing : the payoff of a decision whose time is up; payoffs told before are learned then, too,
        because those alone would be a biased sample. Without it the decision is forgotten, and
        what it would have taught is asked again.
    rng : a seed, or a generator that yields one.
    name : what tables call it.

    >>> from continuarm.core.learners.kiefer_wolfowitz import KieferWolfowitz
    >>> from continuarm.core.partitions.grid import Grid
    >>> learner = KieferWolfowitz(step=1.0, width=0.3)
    >>> policy = Policy(Box([18], [90]), Box([1.0], [9.0]), partition=Grid(16), learner=learner)
    >>> decision = policy.ask([37])
    >>> policy.tell(decision, payoff=3.2)
    >>> policy.recommend([37])
    array([5.])
    """

    def __init__(
        self,
        context: Box,
        decision: Box,
        *,
        partition: PartitionOptions,
        learner: LearnerOptions,
        start: Context | None = None,
        ttl: int | None = TTL,
        ttl_seconds: float | None = None,
        missing: float | None = None,
        rng: np.random.Generator | int | None = None,
        name: str = "Policy",
    ) -> None:
        for option, box in (("context", context), ("decision", decision)):
            if not isinstance(box, Box):
                raise SettingsError(f"`{option}` must be a Box, but got {box!r}")
        if not 1 <= decision.dim <= MOST_DIMENSIONS:
            raise SettingsError(
                f"`decision` must have 1 to {MOST_DIMENSIONS} dimensions, but got {decision.dim}"
            )
        parts: list[tuple[str, Any, str]] = [
            ("partition", partition, "Grid(bins=16)"),
            ("learner", learner, "ResponseSurface()"),
        ]
        for option, part, such in parts:
            if not callable(getattr(part, "configured", None)) or isinstance(part, type):
                raise SettingsError(f"`{option}` must be such as {such}, but got {part!r}")
        first = decision.centre if start is None else decision.point(start)
        first.flags.writeable = False
        silence = None if missing is None else _missing(missing)
        waiting = Waiting.checked(ttl, ttl_seconds, silence)
        beginning = Beginning(context, decision, partition, learner, first, key_of(rng), waiting)
        self._begin(Life(beginning), name, Tokens())
        if silence is not None and self.uses_gradient:
            raise SettingsError(f"silence has no gradient, but got missing={missing!r}")
        if silence is not None and abs(silence) > self._life.model.largest_payoff:
            raise SettingsError(f"`missing` must be a payoff, but got {missing!r}")

    def _begin(self, life: Life, name: str, tokens: Tokens) -> None:
        self.name = checks.text("name", name)
        self._life, self._tokens = life, tokens
        self.context, self.decision = life.beginning.context, life.beginning.decision
        self.gate = Gate()
        keep_through_forks(self)
        self._listeners: list[Callable[[events.Event], object]] = []
        self._refused = dict.fromkeys(REASONS.values(), 0)
        self._tokens.renew(life.open.next_id, life.open.oldest_known)

    @property
    def life(self) -> Life:
        """The state behind the policy, which only events should change."""
        return self._life

    @property
    def uses_gradient(self) -> bool:
        """Whether `tell` needs the gradient."""
        return self._life.model.uses_gradient

    @property
    def ttl(self) -> int | None:
        """Decisions after which a payoff is not waited for any more."""
        return self._life.beginning.waiting.ttl

    @property
    def ttl_seconds(self) -> float | None:
        """The same in the caller's time."""
        return self._life.beginning.waiting.ttl_seconds

    @property
    def missing(self) -> float | None:
        """The payoff of a decision whose time is up; None: it is forgotten."""
        return self._life.beginning.waiting.missing

    @property
    def open_decisions(self) -> int:
        """How many decisions wait for their payoff."""
        return len(self._life.open.open) - len(self._life.open.held)

    def __repr__(self) -> str:
        beginning, (payoffs, bins) = self._life.beginning, self._life.model.learned
        parts = f"{brief(beginning.partition)} × {brief(beginning.learner)}"
        learned = f"payoffs learned: {payoffs:,}, bins made: {bins:,}"
        return f"<{self.name}, {learned}, decisions open: {self.open_decisions:,}; {parts}>"

    def describe(self) -> dict[str, Any]:
        """What the options came to: partition and learner as numbers."""
        model = self._life.model
        parts = {"partition": model.pcfg, "learner": model.lcfg}
        return {
            role: {"kind": type(cfg).__name__.removesuffix("Config")} | compiling.plain(cfg)
            for role, cfg in parts.items()
        }

    def copy(self, rng: np.random.Generator | int | None = None) -> Self:
        """An independent policy in the same state, with other random numbers if given."""
        key = None if rng is None else key_of(rng)
        with self.gate:
            life, tokens = self._life.copy(key), Tokens(self._tokens.tokens)
        other = object.__new__(type(self))
        other._begin(life, self.name, tokens)
        return other

    def __copy__(self) -> Self:
        return self.copy()

    def rehearsed(self, rng: np.random.Generator | int) -> Self:
        """An independent policy with nothing open, for a simulation."""
        other = self.copy(rng)
        other.forget_all()
        other.life.open.next_id = 0  # other draws, whose numbers begin anew
        other._tokens.renew(0, 0)
        return other

    def __getstate__(self) -> dict[str, Any]:
        with self.gate:
            return {"state": state.to_bytes(self._life), **self._shell()}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        life = state.from_bytes(saved["state"])
        life.open.closed.restore(saved["closed"])
        self._begin(life, saved["name"], Tokens(saved["tokens"]))

    def _shell(self) -> dict[str, Any]:
        closed = self._life.open.closed.to_plain()
        return {"name": self.name, "tokens": self._tokens.tokens, "closed": closed}

    def listen(self, listener: Callable[[events.Event], object]) -> None:
        """Call `listener` with each event from now on, in order, when it has happened.

        It must not raise: what has happened stays, and the caller would get the error instead.

        Applied to a policy that is as this one is now, they make it as this one will be.
        """
        with self.gate:
            self._listeners.append(listener)

    def apply(self, event: events.Event) -> None:
        """Let an event of another policy's life happen to this one, too."""
        with self.gate:
            checked_events.check(self._life, event)
            self._apply(event)

    def _apply(self, event: events.Event) -> None:
        self._life.apply(event)
        self._tell_listeners(event)

    def _tell_listeners(self, event: events.Event) -> None:
        for listener in self._listeners:
            listener(event)

    def snapshot(self) -> bytes:
        """The state as bytes, without what only a process has; equal states are equal bytes."""
        with self.gate:
            return state.to_bytes(self._life)

    @classmethod
    def from_snapshot(cls, content: bytes, *, name: str = "Policy") -> Self:
        """The policy whose state `snapshot` gave."""
        policy = object.__new__(cls)
        policy._begin(state.from_bytes(content), name, Tokens())
        return policy

    def ask(
        self, context: Context = (), *, within: Box | None = None, now: float | None = None
    ) -> Decision:
        """A decision for this context; it may explore.

        Parameters
        ----------
        within : a box inside the decision box, for this decision only.
        now : the caller's time in seconds, for `ttl_seconds`; default `time.time()`.
        """
        try:
            if within is not None:
                within = self._life.in_order(within)
            given = self.context.array(context)
            given.setflags(write=False)  # a decision keeps it
            with self.gate:
                return self._ask(given, within, now)
        except ContinuarmError as error:
            self._count_refused(error)
            raise

    def _ask(self, given: Array, within: Box | None, now: float | None) -> Decision:
        life = self._life
        at = 0.0 if life.beginning.waiting.ttl_seconds is None else self._time(now)
        if life.open.is_due(at):
            self.context.point(given)  # what is refused gives up nothing
            life.limits_within(within)
            self._apply(events.TimePassed(at))
        event, seat = life.decide(given, at, within, explained=bool(self._listeners))
        event.value.setflags(write=False)  # it is kept to recognise the decision
        life.ask(event, seat)
        if self._listeners:
            self._tell_listeners(event)
        names, token = self.decision.names, self._tokens.newest
        return Decision(event.id, given, event.value, names, token, event.role)

    def _time(self, now: Any) -> float:
        """The caller's time, the clock's where it is not given; it never goes back."""
        if self.ttl_seconds is None:
            return 0.0
        if now is None:
            now = time.time()
        elif isinstance(now, bool) or not isinstance(now, checks.REAL) or not -FAR < now < FAR:
            raise InputError(f"`now` must be a finite number of seconds, but got {now!r}")
        return max(self._life.now, float(now))

    def tell(
        self,
        decision: Decision | int,
        payoff: float,
        *,
        gradient: ArrayLike | None = None,
        value: Context | None = None,
    ) -> None:
        """Learn the payoff of a decision, in any order; each decision once.

        Parameters
        ----------
        gradient : of the payoff, for a policy that takes one.
        value : what was really done, if the decision was rounded, clipped or changed by a person.
            It must lie in the decision box. Policies whose observations belong together (stencils,
            gradients) refuse it.
        """
        try:
            with self.gate:
                id_ = self._number_of(decision)
                slope, done = self._gradient(gradient), self._done(value)
                event: events.Told = new(events.Told, (id_, self._payoff(payoff), slope, done))
                self._tell(event)
        except ContinuarmError as error:
            self._count_refused(error)
            raise

    def _tell(self, event: events.Told) -> None:
        self._life.tell(event)
        if self._listeners:
            self._tell_listeners(event)

    def _count_refused(self, error: ContinuarmError) -> None:
        reason = next(name for kind, name in REASONS.items() if isinstance(error, kind))
        self._refused[reason] += 1

    @_counting_refusals
    def forget(self, decision: Decision | int) -> None:
        """A payoff will never come: what the decision would have taught may be asked again."""
        with self.gate:
            self._apply(events.Forgotten(self._number_of(decision)))

    def expire(self, now: float | None = None) -> int:
        """Give up on the decisions whose time to live is over, as `ask` does.

        Return how many there were.
        """
        with self.gate:
            at, before = self._time(now), len(self._life.open.open)
            if at > self._life.now or self._life.open.is_due(at):
                self._apply(events.TimePassed(at))
            return before - len(self._life.open.open)

    def forget_all(self) -> None:
        """Forget every open decision, the oldest first; learn what `missing` has held back."""
        with self.gate:
            if self._life.open.open:
                self._apply(events.OpenForgotten())

    def _number_of(self, decision: Any, token: object = None) -> int:
        """The number of an open decision, which may be given instead of it, with its token."""
        id_, opened = decision, self._life.open
        if isinstance(decision, Decision):
            id_, token = decision.id, decision.policy
        if type(id_) is not int:
            if isinstance(id_, bool) or not isinstance(id_, WHOLE):
                raise UnknownDecisionError(
                    f"a Decision or its number is needed, but got {decision!r}"
                )
            id_ = int(id_)
        if token is not None and not self._tokens.marks(id_, token):
            raise UnknownDecisionError(
                f"the decision must be of this policy, but got {decision!r} of another"
            )
        if not opened.is_open(id_):
            raise opened.refusal(id_)
        if isinstance(decision, Decision):
            value = opened.value(id_)
            if decision.value is not value and not np.array_equal(decision.value, value):
                raise UnknownDecisionError(
                    f"decision {id_} must be {value.tolist()}, but got {decision!r}"
                )
        return id_

    def recommend(self, context: Context = (), *, within: Box | None = None) -> Array:
        """The best decision known now; explores nothing and changes nothing."""
        point = self.context.point(context)[None, :]
        limits = None if within is None else self._life.in_order(within)
        with self.gate:
            return np.asarray(self._life.recommend(point, limits)[0])

    def recommend_many(self, contexts: Contexts) -> Array:
        """The best decisions known now for contexts of shape `(n, dx)`."""
        points = self.context.points(contexts)
        with self.gate:
            return self._life.recommend(points)

    def explain(self, context: Context = (), *, within: Box | None = None) -> dict[str, Any]:
        """The numbers behind a decision for a context: its bin, and what was learned there.

        Boxes and decisions are in units; slopes, curvatures and noise are those of the payoff,
        on the unit cube of decisions.
        """
        point = self.context.point(context)
        if within is not None:
            within = self._life.in_order(within)
        with self.gate:
            found = self._life.explain(point, within)
        for edge in ("low", "high"):
            found[edge] = self.context.from_unit(found[edge]).tolist()
        if "centre" in found:
            centre = self.decision.from_unit(found["centre"])
            limits = self.decision if within is None else within
            found["centre"] = np.clip(centre, limits.low, limits.high).tolist()
        return found

    @_counting_refusals
    def ask_many(self, contexts: Contexts, *, now: float | None = None) -> Decisions:
        """Decisions for contexts of shape `(n, dx)`, as if asked one after the other."""
        points = self.context.points(contexts)
        points.setflags(write=False)
        with self.gate:
            at = self._time(now)
            decisions = [self._ask(point, None, at) for point in points]
        return Decisions(
            np.array([d.id for d in decisions], np.int64),
            points,
            np.array([d.value for d in decisions]).reshape(len(points), self.decision.dim),
            self._tokens.newest,
        )

    @_counting_refusals
    def tell_many(
        self, decisions: Many, payoffs: ArrayLike, *, gradients: Rows = None, values: Rows = None
    ) -> None:
        """Learn many payoffs, as if told one after the other; all of them or none."""
        with self.gate:
            for event in self._told(decisions, payoffs, gradients, values):
                self._tell(event)

    def _told(
        self, decisions: Many, payoffs: ArrayLike, gradients: Rows, done: Rows
    ) -> list[events.Told]:
        token = decisions.policy if isinstance(decisions, Decisions) else None
        ids = [self._number_of(id_, token) for id_ in decision_ids(decisions)]
        if isinstance(decisions, Decisions):
            self._check_values(ids, decisions.values)
        values = [self._payoff(payoff) for payoff in listed(payoffs)]
        if len(values) != len(ids) or len(set(ids)) < len(ids):
            raise InputError(
                f"{len(ids)} different decisions need as many payoffs, but got "
                f"{len(set(ids))} different decisions and {len(values)} payoffs"
            )
        vectors: list[Any] = []
        for name, given in (("gradients", gradients), ("values", done)):
            vectors.append([None] * len(ids) if given is None else self.decision.arrays(given))
            if len(vectors[-1]) != len(ids):
                raise InputError(f"{len(ids)} {name} are needed, but got {len(vectors[-1])}")
        return [
            events.Told(id_, value, self._gradient(slope), self._done(other))
            for id_, value, slope, other in zip(ids, values, *vectors, strict=True)
        ]

    def _check_values(self, ids: list[int], given: Any) -> None:
        """What is told is what was decided."""
        kept = np.array([self._life.open.value(id_) for id_ in ids])
        if np.shape(given) != kept.shape or not np.array_equal(given, kept):
            raise UnknownDecisionError(
                f"the decisions {ids} must be {kept.tolist()}, but got {given!r}"
            )

    def forked(self) -> None:
        """In a child process: what it hands out from now on is none of its parent's."""
        self._tokens.renew(self._life.open.next_id, self._life.open.oldest_known)

    def warm_up(self) -> None:
        """Compile, or load from disk, all that `ask`, `tell`, `forget` and `recommend` need.

        In a fresh installation that takes some seconds for each kind of policy: call it before the
        shop opens. The policy itself does not change.
        """
        twin, point = self.copy(rng=0), self.context.centre
        slope = np.zeros(self.decision.dim) if self.uses_gradient else None
        twin.listen(lambda event: None)
        twin.tell(twin.ask(point), 0.0, gradient=slope)
        twin.forget(twin.ask(point))
        twin.recommend(point)
        twin.explain(point)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of it to one file, open decisions included, for `load`.

        The file is written whole or not at all. Of several threads that save to one path, the last
        one's policy is there when all have returned.
        """
        with saved_file.alone(path):
            with self.gate:
                shell, content = self._shell(), state.to_bytes(self._life)
            saved_file.write(path, shell, content)

    def export(self) -> str:
        """What it has learned as a table in JSON, from which `continuarm.Reader` decides."""
        with self.gate:
            rules = self._life.model.rules(self._life.limits)
        return export(self.name, self.context, self.decision, rules)

    def learn_from(self, table: Any, *, payoff: str = "payoff") -> None:
        """Start from the log of an older rule: one row per decision, in the order of time.

        Parameters
        ----------
        table : columns by name (a dictionary of sequences, or a data frame of polars or pandas):
            the names of the context, of the decision, and `payoff`. No propensities are needed.
        payoff : the name of the payoffs' column.
        """
        x, y, z = warm_start.log_columns(table, payoff, self.context, self.decision)
        payoffs = np.array([self._payoff(value) for value in z.tolist()])
        if len(payoffs):
            with self.gate:
                self._apply(events.LearnedFromLog(x, y, payoffs))

    def bins(self) -> list[Bin]:
        """The bins that have been visited and not split, in the order in which they were made."""
        with self.gate:
            found = self._life.model.bins(self._life.limits)
            asked = self._life.asked_per_bin
            counts = {b.serial: asked[b.serial] for b in found if b.serial < len(asked)}
        from_unit = self.context.from_unit
        return [
            Bin(
                from_unit(b.low),
                from_unit(b.high),
                b.level,
                counts.get(b.serial, 0),
                b.told,
                b.progress,
                b.best,
                b.serial,
            )
            for b in found
        ]

    def stats(self) -> Stats:
        """How it has fared: decisions by what became of them, refusals, bins, payoffs."""
        with self.gate:
            opened = self._life.open
            told = self._life.model.payoffs_per_bin()
            counts, held = opened.closed.counts, len(opened.held)
            return Stats(
                asked=opened.asked,
                told=counts[TOLD],
                open=len(opened.open) - held,
                held=held,
                expired=counts[EXPIRED],
                forgotten=counts[FORGOTTEN],
                refused=dict(self._refused),
                bins=len(told),
                payoffs_per_bin=told,
                mean_payoff=opened.closed.mean_payoff if opened.closed.averaged else None,
            )

    def _payoff(self, payoff: Any) -> float:
        value, largest = finite(payoff), self._life.model.largest_payoff
        if abs(value) > largest:
            raise InputError(f"the payoff must be within ±{largest:g}, but got {payoff!r}")
        return value

    def _done(self, value: Context | None) -> Array | None:
        if value is None:
            return None
        if not self._life.takes_values:
            raise InputError(f"{self.name} learns from what it decided alone, but got {value!r}")
        point = self.decision.point(value)
        point.flags.writeable = False
        return point

    def _gradient(self, gradient: ArrayLike | None) -> Array | None:
        if not self.uses_gradient:
            if gradient is not None:
                raise InputError(f"{self.name} takes no gradient, but got {gradient!r}")
            return None
        if gradient is None:
            raise InputError(f"{self.name} needs a gradient, but got None")
        slope = self.decision.array(gradient)
        if not np.isfinite(slope).all():
            raise InputError(f"the gradient must be finite, but got {slope.tolist()}")
        return slope


def _missing(missing: Any) -> float:
    try:
        return finite(missing)
    except InputError:
        raise SettingsError(f"`missing` must be a payoff, but got {missing!r}") from None


def load(path: str | os.PathLike[str]) -> Policy:
    """The policy that `save` wrote: it continues as the saved one would have.

    Its draws, and the decisions that were open, are those of the saved one. Partitions and
    learners of your own are found by the names under which they were registered.
    """
    shell, content = saved_file.read(path)
    life = state.from_bytes(content)
    try:
        name = checks.text("name", shell["name"])
        closed = shell["closed"]
        tokens = [(checks.whole("id", first, 0), str(token)) for first, token in shell["tokens"]]
    except (KeyError, TypeError, ValueError) as error:
        raise SavedFileError(f"a saved file must say its name and tokens, but {error}") from None
    life.open.closed.restore(closed)
    policy = object.__new__(Policy)
    policy._begin(life, name, Tokens(tokens))
    return policy
