"""Policy: partition × learner behind `ask`, `tell` and `recommend`.

The verbs: `ask` and `tell` make an event and apply it. What only a process has is in `shell`,
what a caller may hand over in `inputs`.
"""

import os
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from continuarm import checks
from continuarm.box import Box
from continuarm.core import numbered_bins
from continuarm.core.compiling import Array
from continuarm.core.learners.protocol import LearnerOptions
from continuarm.core.model import ModelBin
from continuarm.core.partitions.protocol import PartitionOptions
from continuarm.errors import ContinuarmError, InputError, SavedFileError, SettingsError
from continuarm.live import events, explaining, saved_file, state, warm_start
from continuarm.live.closings import EXPIRED, FORGOTTEN, TOLD, Stats
from continuarm.live.deciding import Beginning, Rules, new
from continuarm.live.decision import Bin, Decision, Decisions
from continuarm.live.diagnosis.diagnose import diagnosed
from continuarm.live.diagnosis.examined import examined
from continuarm.live.diagnosis.findings import Findings
from continuarm.live.explanation import Explanation
from continuarm.live.export import export, segments_in
from continuarm.live.history import History
from continuarm.live.incumbent import Start, incumbent_of
from continuarm.live.inputs import Context, Contexts, Many, Rows, finite, key_of
from continuarm.live.limits import Given, Within, within_of
from continuarm.live.near_reference import Move, life_of, move_of
from continuarm.live.open_decisions import TTL, Waiting
from continuarm.live.plotted import Plotted
from continuarm.live.segments import Segment
from continuarm.live.shell import counting_refusals
from continuarm.live.tokens import Tokens
from continuarm.live.uplift import checked_share
from continuarm.sets import is_guarded
from continuarm.strokes import to_the_end

__all__ = ["Context", "Policy", "Start", "load"]

MOST_DIMENSIONS = 2**19  # a ticket counts the slots of a stencil


class Policy(Plotted):
    """A partition of the contexts × a learner in each bin.

    Parameters
    ----------
    context, decision : the boxes; a context box without dimensions makes it context-free.
    partition : `Grid`, `Tree`, `EvidenceTree`, or one of your own.
    learner : `KieferWolfowitz`, `GradientAscent`, `SmoothGradient`, `GridUCB`,
        `ResponseSurface`, `SmoothSurface`, `BasisSurface`, `LogitDemand`, or your own.
    start : what is done today: a decision, an `AffineRule` of the context, or a function that is
        called with a context (a dictionary if its box has names, else an array) and answers a
        decision; default the centre of the box.
    ttl : decisions of the policy after which a payoff is not waited for any more; None: for ever.
    ttl_seconds : the same in the caller's time, the `now` of `ask`.
    missing : the payoff of a decision whose time is up; payoffs told before are learned then, too,
        because those alone would be a biased sample. Without it the decision is forgotten, and
        what it would have taught is asked again.
    share : of decisions that are the incumbent's, chosen by the policy's own draws, so that
        `uplift` can say how much better ours are.
    max_move : how far from a reference decisions may be, in units: a number, one per coordinate,
        or by name for some. The reference is the incumbent, and from `renew_reference()` on what
        was learned by then. Policies that do not learn within limits refuse it.
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
        start: Start | None = None,
        ttl: int | None = TTL,
        ttl_seconds: float | None = None,
        missing: float | None = None,
        share: float = 0.0,
        max_move: Move | None = None,
        rng: np.random.Generator | int | None = None,
        name: str = "Policy",
    ) -> None:
        for option, box in (("context", context), ("decision", decision)):
            if not isinstance(box, Box):
                raise SettingsError(f"`{option}` must be a Box, but got {box!r}")
        if is_guarded(context):
            raise SettingsError(
                f"`context` must be a Box without spacing or coupled limits, but got {context!r}"
            )
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
        first = None if start is None else incumbent_of(context, decision, start)
        silence = None if missing is None else _missing(missing)
        waiting = Waiting.checked(ttl, ttl_seconds, silence)
        part = checked_share(share)
        key, move = key_of(rng), move_of(max_move, decision)
        beginning = Beginning(
            context, decision, partition, learner, first, key, waiting, part, move
        )
        self._begin(life_of(beginning), name, Tokens())
        if silence is not None and self.uses_gradient:
            raise SettingsError(f"silence has no gradient, but got missing={missing!r}")
        if silence is not None and abs(silence) > self._life.model.largest_payoff:
            raise SettingsError(f"`missing` must be a payoff, but got {missing!r}")

    def rehearsed(self, rng: np.random.Generator | int) -> Self:
        """An independent policy with nothing open, for a simulation."""
        other = self.copy(rng)
        other.forget_all()
        other.life.open.next_id = 0  # other draws, whose numbers begin anew
        other.life.compare_anew()
        other.life.history, other.life.keeps_history = History(), False
        other._tokens.renew(0, 0)
        return other

    def ask(
        self, context: Context = (), *, within: Given | None = None, now: float | None = None
    ) -> Decision:
        """A decision for this context; it may explore.

        Parameters
        ----------
        within : limits for this decision only: a box inside the decision box, or by name for some
            coordinates, `{"price": (3.0, 4.5)}`; equal limits fix one.
        now : the caller's time in seconds, for `ttl_seconds`; default `time.time()`.
        """
        gate = self.gate
        try:
            limits = None if within is None else within_of(within, self.decision)
            given = self.context.array(context)
            given.setflags(write=False)  # a decision keeps it
            own = self._life.incumbent.own
            start = None if own is None else own.at(given)
            with gate.lock:
                if gate.busy:
                    raise gate.refusal()
                gate.busy = True
                try:
                    return self._ask(given, limits, now, start)
                finally:
                    gate.busy = False
                    if gate.leaving is not None:
                        gate.leave(gate.leaving)
        except ContinuarmError as error:
            self._count_refused(error)
            raise

    def _ask(
        self, given: Array, within: Within | None, now: float | None, start: Array | None
    ) -> Decision:
        life = self._life
        at = 0.0 if life.beginning.waiting.ttl_seconds is None else self._time(now)
        if life.open.is_due(at):
            self.context.point(given)  # what is refused gives up nothing
            life.check_within(given, within, start)
            life.apply(events.TimePassed(at))
        listened = bool(self._listeners)
        event, seat = life.decide(given, at, within, start=start, explained=listened)
        event.value.setflags(write=False)  # it is kept to recognise the decision
        event.start.setflags(write=False)
        life.ask(event, seat)
        names, token = self.decision.names, self._tokens.newest
        handed_out = event if listened else None
        moved = event.role == events.INCUMBENTS and not np.array_equal(event.value, event.start)
        return Decision(event.id, given, event.value, names, token, event.role, handed_out, moved)

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
        inputs, gate = self._inputs, self.gate
        try:
            with gate.lock:
                if gate.busy:
                    raise gate.refusal()
                gate.busy = True
                try:
                    id_ = inputs.number_of(decision)
                    slope, done = inputs.gradient(gradient), inputs.done(value)
                    told = (id_, inputs.payoff(payoff), slope, done)
                    self._life.tell(new(events.Told, told))
                finally:
                    gate.busy = False
                    if gate.leaving is not None:
                        gate.leave(gate.leaving)
        except ContinuarmError as error:
            self._count_refused(error)
            raise

    @counting_refusals
    def forget(self, decision: Decision | int) -> None:
        """A payoff will never come: what the decision would have taught may be asked again."""
        self.gate.alone(self._forget, decision)

    def _forget(self, decision: Decision | int) -> None:
        self._life.apply(events.Forgotten(self._inputs.number_of(decision)))

    def expire(self, now: float | None = None) -> int:
        """Give up on the decisions whose time to live is over, as `ask` does.

        Return how many there were.
        """
        return self.gate.alone(self._expire, now)

    def _expire(self, now: float | None) -> int:
        at, before = self._time(now), len(self._life.open.open)
        if at > self._life.now or self._life.open.is_due(at):
            self._life.apply(events.TimePassed(at))
        return before - len(self._life.open.open)

    def forget_all(self) -> None:
        """Forget every open decision, the oldest first; learn what `missing` has held back."""
        self.gate.alone(self._forget_all)

    def _forget_all(self) -> None:
        if self._life.open.open:
            self._life.apply(events.OpenForgotten())

    def recommend(self, context: Context = (), *, within: Given | None = None) -> Array:
        """The best decision known now; explores nothing and changes nothing."""
        point = self.context.point(context)[None, :]
        limits = None if within is None else within_of(within, self.decision)
        starts = self._own_starts(point)
        return np.asarray(self.gate.alone(self._life.recommend, point, limits, starts)[0])

    def recommend_many(self, contexts: Contexts) -> Array:
        """The best decisions known now for contexts of shape `(n, dx)`."""
        points = self.context.points(contexts)
        starts = self._own_starts(points)
        return self.gate.alone(self._life.recommend, points, None, starts)

    def _own_starts(self, points: Array) -> Array | None:
        """What a function of the user's says to contexts `(n, dx)`; None: there is none."""
        own = self._life.incumbent.own
        return None if own is None else own.many(points)

    def explain(
        self, what: Context | Decision | events.Asked = (), *, within: Given | None = None
    ) -> Explanation:
        """Why a decision was made, or what is best for a context, and how sure that is.

        Parameters
        ----------
        what : a context: as of now; a decision that is open, or the event that handed one out: as
            of when it was asked, if somebody listened then.
        within : limits, for a context.

        It is a dictionary; printed, it is text that needs no other. Boxes and decisions are in
        units; slopes, curvatures and noise are those of the payoff, on the unit cube of decisions.
        """
        if isinstance(what, Decision | events.Asked):
            if within is not None:
                raise InputError(f"a decision has limits of its own, but got within={within!r}")
            return explaining.of_decision(self, what)
        limits = None if within is None else within_of(within, self.decision)
        return explaining.of_context(self, self.context.point(what), limits)

    def diagnose(self) -> Findings:
        """The assumptions of learning, checked on what it has seen: what contradicts them.

        A list of `Finding`, the worst first; printed, it is text that needs no other. `unchecked`
        says which checks could not be made. Nothing changes, and no number of payoffs is stored:
        the checks read what bins have learned, and a fixed number of sums.
        """
        return diagnosed(self.gate.alone(examined, self._life), self.recommend_many)

    @counting_refusals
    def ask_many(self, contexts: Contexts, *, now: float | None = None) -> Decisions:
        """Decisions for contexts of shape `(n, dx)`, as if asked one after the other."""
        points = self.context.points(contexts)
        points.setflags(write=False)
        starts = self._own_starts(points)
        decisions = self.gate.alone(self._ask_all, points, starts, now)
        return Decisions(
            np.array([d.id for d in decisions], np.int64),
            points,
            np.array([d.value for d in decisions]).reshape(len(points), self.decision.dim),
            self._tokens.newest,
            tuple(d.role for d in decisions),
        )

    def _ask_all(self, points: Array, starts: Array | None, now: float | None) -> list[Decision]:
        at, own = self._time(now), [None] * len(points) if starts is None else starts
        return [
            self._ask(point, None, at, start) for point, start in zip(points, own, strict=True)
        ]

    @counting_refusals
    def tell_many(
        self, decisions: Many, payoffs: ArrayLike, *, gradients: Rows = None, values: Rows = None
    ) -> None:
        """Learn many payoffs, as if told one after the other; all of them or none."""
        self.gate.alone(self._tell_checked, decisions, payoffs, gradients, values)

    def _tell_checked(self, *given: Any) -> None:
        told = self._inputs.told(*given)
        to_the_end(lambda: self._life.tell_open(told), self._life.progress)

    def warm_up(self) -> None:
        """Compile, or load from disk, all that `ask`, `tell`, `forget` and `recommend` need.

        In a fresh installation that takes some seconds for each kind of policy: call it before the
        shop opens. The policy itself does not change.
        """
        twin, point = self.copy(rng=0), self.context.centre
        slope = np.ones(self.decision.dim) if self.uses_gradient else None
        twin.listen(lambda event: None)
        twin.tell(twin.ask(point), 0.0, gradient=slope)
        twin.forget(twin.ask(point))
        twin.recommend(point)
        twin.explain(point)
        twin.life.model.warm_up()

    def export(self) -> str:
        """What it has learned as a table in JSON, from which `continuarm.Reader` decides."""
        return export(self.name, *self.gate.alone(self._exported))

    def _exported(self) -> tuple[list[Rules], Array | None, dict[str, Any]]:
        return self._life.rules(), self.max_move, segments_in(self._life.segments)

    def learn_from(self, table: Any, *, payoff: str = "payoff") -> None:
        """Start from the log of an older rule: one row per decision, in the order of time.

        A policy with a reach keeps near what the log did: `start` becomes the log's own rule,
        unless it was given, and the reach half of the log's half-width around that rule.

        Parameters
        ----------
        table : columns by name (a dictionary of sequences, or a data frame of polars or pandas):
            the names of the context, of the decision, and `payoff`. No propensities are needed.
        payoff : the name of the payoffs' column.
        """
        event = self.log_event(table, payoff)
        if len(event.payoffs):
            self.gate.alone(self._life.apply, event)

    def log_event(self, table: Any, payoff: str = "payoff") -> events.LearnedFromLog:
        """The event that a log is; it changes nothing."""
        x, y, z = warm_start.log_columns(table, payoff, self.context, self.decision)
        payoffs = np.array([self._inputs.payoff(value) for value in z.tolist()])
        return events.LearnedFromLog(x, y, payoffs)

    def bins(self) -> list[Bin]:
        """The bins that have been visited and not split, in the order in which they were made."""
        found, asked, frozen = self.gate.alone(self._bins)
        edge = self.context.edge_from_unit
        return [
            Bin(
                edge(b.low),
                edge(b.high),
                b.level,
                asked.get(b.serial, 0),
                b.told,
                b.progress,
                b.best,
                b.serial,
                b.serial in frozen,
            )
            for b in found
        ]

    def _bins(self) -> tuple[list[ModelBin], dict[int, int], list[int]]:
        found = self._life.bins()
        return found, dict(self._life.asked_of), numbered_bins.frozen(self._life.model.state)

    @property
    def frozen(self) -> list[Segment | Bin]:
        """What is frozen: segments, the one that answers first before others, and then bins."""
        segments, bins = self.gate.alone(self._frozen)
        return [*segments, *(one for one in self.bins() if one.id in bins)] if bins else segments

    def _frozen(self) -> tuple[list[Any], list[int]]:
        segments = [segment for segment, _ in self._life.segments]
        return segments, numbered_bins.frozen(self._life.model.state)

    def stats(self) -> Stats:
        """How it has fared: decisions by what became of them, refusals, bins, payoffs."""
        return self.gate.alone(self._stats)

    def _stats(self) -> Stats:
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
            mean_payoff=opened.closed.mean_payoff,
        )


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
        tokens = [
            (checks.whole("id", first, 0, 2**128), str(token)) for first, token in shell["tokens"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise SavedFileError(f"a saved file must say its name and tokens, but {error}") from None
    life.open.closed.restore(closed)
    policy = object.__new__(Policy)
    policy._begin(life, name, Tokens(tokens))
    return policy
