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
        if not callable(listener):
            raise InputError(f"a listener must be callable, but got {listener!r}")
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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of it to one file, open decisions included, for `load`.

        The file is written whole or not at all. Of several threads that save to one path, the last
        one's policy is there when all have returned.
        """
        with saved_file.alone(path):
            with self.gate:
                shell, content = self._shell(), state.to_bytes(self._life)
            saved_file.write(path, shell, content)

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
