"""Shell: what only a process has around a life, and the ways in which a life leaves it.

The lock, the clock, the token that marks its decisions, and those who listen; copies, bytes and
files.
"""

import os
import time
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import numpy as np

from continuarm import checks
from continuarm.box import Box
from continuarm.core import compiling
from continuarm.core.compiling import Array
from continuarm.core.partitions import protocol as partition
from continuarm.errors import (
    AlreadyToldError,
    ContinuarmError,
    ExpiredDecisionError,
    InputError,
    UnknownDecisionError,
)
from continuarm.live import checked_events, events, saved_file, state
from continuarm.live.gate import Gate, keep_through_forks
from continuarm.live.inputs import Inputs, key_of
from continuarm.live.life import Life
from continuarm.live.registry import brief
from continuarm.live.tokens import Tokens

__all__ = ["Shell", "counting_refusals"]

FAR = 1e300  # seconds
REASONS: dict[type[Exception], str] = {
    AlreadyToldError: "already told",
    ExpiredDecisionError: "expired",
    UnknownDecisionError: "unknown decision",
    InputError: "bad input",
    ContinuarmError: "other",
}


Given = ParamSpec("Given")
Answer = TypeVar("Answer")
Called = TypeVar("Called", bound="Shell")


def counting_refusals(
    method: Callable[Concatenate[Called, Given], Answer],
) -> Callable[Concatenate[Called, Given], Answer]:
    """Count what a method refuses; where every microsecond counts it is written out."""

    @wraps(method)
    def counted(self: Called, /, *args: Given.args, **options: Given.kwargs) -> Answer:
        try:
            return method(self, *args, **options)
        except ContinuarmError as error:
            self._count_refused(error)
            raise

    return counted


class Shell:
    """A life in a process."""

    name: str
    context: Box
    decision: Box
    gate: Gate

    def _begin(self, life: Life, name: str, tokens: Tokens) -> None:
        self.name = checks.text("name", name)
        self._life, self._tokens = life, tokens
        self.context, self.decision = life.beginning.context, life.beginning.decision
        self.gate = Gate()
        keep_through_forks(self)
        self._listeners: list[Callable[[events.Event], object]] = []
        self._heard = 0  # how many of them have heard the event that they are told of
        self._inputs = Inputs(life, tokens, name)
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
    def start(self) -> Any:
        """What is done today, in units: an `AffineRule`, or the function that was given."""
        return self._life.incumbent.shown()

    @property
    def reach(self) -> Array | None:
        """How far from what is known to be good it may try, in units; None: anywhere."""
        reach = self._life.limits.reach
        return reach * self.decision.span if reach.any() else None

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
    def share(self) -> float:
        """Of decisions, how many are the incumbent's, to compare with."""
        return self._life.beginning.share

    @property
    def has_one_bin(self) -> bool:
        """Whether it can never have more than one bin: `cells` show more of it than `bins`."""
        return self.context.dim == 0 or partition.single(self._life.model.pcfg)

    @property
    def open_decisions(self) -> int:
        """How many decisions wait for their payoff."""
        return len(self._life.open.open) - len(self._life.open.held)

    def number_of(self, decision: Any) -> int:
        """The number of an open decision of this policy."""
        return self._inputs.number_of(decision)

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
        life, tokens = self.gate.alone(lambda: (self._life.copy(key), Tokens(self._tokens.tokens)))
        other = object.__new__(type(self))
        other._begin(life, self.name, tokens)
        return other

    def __copy__(self) -> Self:
        return self.copy()

    def __getstate__(self) -> dict[str, Any]:
        return self.gate.alone(lambda: {"state": state.to_bytes(self._life), **self._shell()})

    def __setstate__(self, saved: dict[str, Any]) -> None:
        life = state.from_bytes(saved["state"])
        life.open.closed.restore(saved["closed"])
        self._begin(life, saved["name"], Tokens(saved["tokens"]))

    def _shell(self) -> dict[str, Any]:
        closed = self._life.open.closed.to_plain()
        return {"name": self.name, "tokens": self._tokens.tokens, "closed": closed}

    def listen(self, listener: Callable[[events.Event], object]) -> None:
        """Call `listener` with each event from now on, in order, when it has happened.

        It must not raise: what has happened stays, and the caller would get the error instead,
        when all the others have been called. None is called twice with one event.

        Applied to a policy that is as this one is now, they make it as this one will be.
        """
        if not callable(listener):
            raise InputError(f"a listener must be callable, but got {listener!r}")
        self.gate.alone(self._listen, listener)

    def _listen(self, listener: Callable[[events.Event], object]) -> None:
        self._listeners.append(listener)
        if self._life.unheard is None:
            self._life.unheard, self.gate.leaving = [], self._tell_listeners

    def apply(self, event: events.Event) -> None:
        """Let an event of another policy's life happen to this one, too."""
        self.gate.alone(self._apply_checked, event)

    def _apply_checked(self, event: events.Event) -> None:
        checked_events.check(self._life, event)
        self._life.apply(event)

    def _tell_listeners(self) -> None:
        """Each hears of each event once; what is raised is raised when all have heard."""
        unheard, raised = self._life.unheard, None
        while unheard:
            try:
                self._tell_of(unheard)
            except BaseException as error:
                raised = raised or error
        if raised is not None:
            raise raised

    def _tell_of(self, unheard: list[events.Event]) -> None:
        event, listeners = unheard[0], self._listeners
        while self._heard < len(listeners):
            listener = listeners[self._heard]
            self._heard += 1  # before the call: what it raises is its own
            listener(event)
        self._heard = 0
        del unheard[0]

    def snapshot(self) -> bytes:
        """The state as bytes, without what only a process has; equal states are equal bytes."""
        return self.gate.alone(state.to_bytes, self._life)

    @classmethod
    def from_snapshot(cls, content: bytes, *, name: str = "Policy") -> Self:
        """The policy whose state `snapshot` gave."""
        return cls.of_life(state.from_bytes(content), name=name)

    @classmethod
    def of_life(cls, life: Life, *, name: str = "Policy") -> Self:
        """The policy that a life is that of."""
        policy = object.__new__(cls)
        policy._begin(life, name, Tokens())
        return policy

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of it to one file, open decisions included, for `load`.

        The file is written whole or not at all. Of several threads that save to one path, the last
        one's policy is there when all have returned.
        """
        saved_file.gate_of(path).alone(self._save, path)

    def _save(self, path: str | os.PathLike[str]) -> None:
        saved_file.write(
            path, *self.gate.alone(lambda: (self._shell(), state.to_bytes(self._life)))
        )

    def forked(self) -> None:
        """In a child process: what it hands out from now on is none of its parent's."""
        self._tokens.renew(self._life.open.next_id, self._life.open.oldest_known)

    def _time(self, now: Any) -> float:
        """The caller's time, the clock's where it is not given; it never goes back."""
        if self.ttl_seconds is None:
            return 0.0
        if now is None:
            now = time.time()
        elif isinstance(now, bool) or not isinstance(now, checks.REAL) or not -FAR < now < FAR:
            raise InputError(f"`now` must be a finite number of seconds, but got {now!r}")
        return max(self._life.now, float(now))

    def _count_refused(self, error: ContinuarmError) -> None:
        reason = next(name for kind, name in REASONS.items() if isinstance(error, kind))
        self._refused[reason] += 1
