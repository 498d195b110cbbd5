"""Experiments: those of a store that this process has opened, and how one is made."""

import asyncio
import logging
import re
import time
from threading import Lock
from typing import Any, NamedTuple

from msgspec import to_builtins
from starlette.requests import Request as HttpRequest

from continuarm.box import Box
from continuarm.errors import (
    ContinuarmError,
    ExperimentConflictError,
    SettingsError,
    StoreError,
    UnavailableError,
    UnknownExperimentError,
)
from continuarm.ledger.beginnings import OtherVersionError
from continuarm.ledger.shared import begun
from continuarm.live.guarded import Changes
from continuarm.live.named import makes
from continuarm.live.named.by_name import maker_of
from continuarm.live.policy import Policy
from continuarm.service.fields import about
from continuarm.service.helpers import Helpers
from continuarm.service.messages import Edges, NewExperiment
from continuarm.service.running import MAX_BEHIND, Running
from continuarm.sets import Polytope
from continuarm.store.protocol import Store
from continuarm.store.records import Experiment
from continuarm.store.rules import appendable

__all__ = ["Experiments", "changeable"]

MOST = 1000  # experiments
POLICIES = ("recommended", "static-kwsa", "adaptive-kwsa", "uniform-ucb")
AGAIN, SELDOM = 2.0, 60.0  # seconds before one is tried again: at first, and at last
LOG = logging.getLogger("continuarm")


class Quarantined(NamedTuple):
    """An experiment that cannot be opened, or not go on.

    reason : in one line; it may quote what is in the store.
    said : the same for everybody, with or without a token.
    tries : to open it.
    again : when the next one is due, by the monotonic clock.
    """

    reason: str
    said: str
    tries: int
    again: float


class Experiments:
    """The experiments of a store.

    One that cannot be opened is quarantined: it is tried again from time to time, and no other
    suffers.

    most : experiments, archived ones included.
    is_stopping : whether the process was told to end.
    quarantined : by name.
    preparing : the names of those that are made now; the compiler may be waited for.
    """

    def __init__(
        self,
        store: Store,
        *,
        max_lag: float = 5.0,
        max_behind: int = MAX_BEHIND,
        most: int = MOST,
    ) -> None:
        self.store, self._lags, self._most = store, (max_lag, max_behind), most
        self.is_stopping = False
        self._running: dict[str, Running] = {}
        self.quarantined: dict[str, Quarantined] = {}
        self.preparing: set[str] = set()
        self._opening, self._helpers = Lock(), Helpers(store)

    def create(self, name: str, new: NewExperiment) -> bool:
        """Make an experiment, or find the same; whether it is new."""
        known = {experiment.name: experiment for experiment in self.store.experiments()}
        if name not in known and len(known) >= self._most:
            raise ExperimentConflictError(
                f"a service has at most {self._most} experiments, but has {len(known)} already"
            )
        if name in known:
            appendable(known[name])
        begun(policy_of(new), self.store, name, **_more(new))
        return name not in known

    def find(self, name: str) -> Running:
        """An experiment of the store, running."""
        if name in self._running:
            return self._running[name]
        with self._opening:
            if name not in self._running:
                held = self.quarantined.get(name)
                if held is not None and time.monotonic() < held.again:
                    raise StoreError(held.reason)
                self._running[name] = self._opened(name)
                self.quarantined.pop(name, None)
            return self._running[name]

    def is_prepared(self, name: str) -> bool:
        """Whether an experiment is made, and nobody has to wait for it."""
        is_made = name not in self.preparing and not self._opening.locked()
        return name in self._running or is_made

    def _opened(self, name: str) -> Running:
        try:
            _check_row(self.store.experiment(name))
            return Running(self.store, name, *self._lags, helpers=self._helpers)
        except UnknownExperimentError:
            self.quarantined.pop(name, None)
            raise
        except Exception as error:
            reason = self._quarantine(name, error)
            if isinstance(error, UnavailableError):
                raise
            raise StoreError(reason) from None

    def _quarantine(self, name: str, error: Exception) -> str:
        """Let an experiment wait; the log has the whole error, and who asks gets one line."""
        held = self.quarantined.get(name)
        passing = held is None or isinstance(error, UnavailableError | OtherVersionError)
        tries = 1 if held is None or passing else held.tries + 1
        words = str(error) if isinstance(error, ContinuarmError) else repr(error)
        reason = f"{name!r} cannot be served now: {' '.join(words.split())}"
        if held is None or held.reason != reason:
            LOG.error("%r is quarantined", name, exc_info=error)
        is_known = isinstance(error, OtherVersionError)
        said = reason if is_known else f"{type(error).__name__}: the server's log has the reason"
        again = time.monotonic() + min(AGAIN * 2.0 ** (tries - 1), SELDOM)
        self.quarantined[name] = Quarantined(reason, said, tries, again)
        return reason

    async def running(self, request: HttpRequest) -> Running:
        """That of a request's path."""
        name: str = request.path_params["name"]
        found = self._running.get(name)
        return await asyncio.to_thread(self.find, name) if found is None else found

    def archive(self, name: str) -> None:
        """Let nothing be decided in an experiment any more."""
        self.store.archive(name)
        with self._opening:
            gone = self._running.pop(name, None)
            self.quarantined.pop(name, None)
        if gone is not None:
            gone.close()

    def names(self) -> list[str]:
        """The names of those that are not archived."""
        return [one.name for one in self.store.experiments() if not one.archived]

    def open_all(self) -> None:
        """Have all running that are not archived; one that cannot be holds up no other."""
        for experiment in self.store.experiments():
            try:
                if not experiment.archived and experiment.head > 0:
                    self.find(experiment.name)
            except ContinuarmError:
                pass
            except Exception as error:  # its row of the store is broken
                self._quarantine(experiment.name, error)

    def look_after(self) -> None:
        """Quarantine what cannot go on, and try again to open what is due."""
        for running in self.all_running():
            if running.replica.is_broken:
                self._close_broken(running)
        for name, held in list(self.quarantined.items()):
            if time.monotonic() >= held.again:
                self._try_again(name)

    def _try_again(self, name: str) -> None:
        try:
            if self.store.experiment(name).archived:
                self.quarantined.pop(name, None)
            else:
                self.find(name)
        except ContinuarmError:  # it waits longer
            pass
        except Exception as error:  # a defect of the store's, which ends no other's turn
            self._quarantine(name, error)

    def _close_broken(self, running: Running) -> None:
        with self._opening:
            if self._running.get(running.name) is running:
                del self._running[running.name]
                self._quarantine(running.name, StoreError(str(running.replica.differs)))
        running.close()

    def stop(self) -> None:
        """Let nobody wait for what happens any more."""
        self.is_stopping = True

    def all_running(self) -> list[Running]:
        """Those that run in here."""
        return list(self._running.values())

    def close(self) -> None:
        """Let all go, and the store."""
        for running in self.all_running():
            running.close()
        self._helpers.close()
        self.store.close()


def _check_row(experiment: Experiment) -> None:
    """Refuse what a store cannot say of how far a ledger goes."""
    _, _, _, begins, head, time_, *_ = experiment
    whole = type(begins) is int and type(head) is int and isinstance(time_, int | float)
    if not whole or not 0 <= begins <= head:
        raise StoreError(
            f"a store must say how far a ledger goes, but says {begins}, {head}, {time_}"
        )


def policy_of(new: NewExperiment) -> Policy:
    """The policy that an experiment begins with."""
    if new.policy not in POLICIES:
        with about("policy"):
            raise SettingsError(
                f"`policy` must be one of {list(POLICIES)}, but got {new.policy!r}"
            )
    options = {*maker_of(new.policy).options()} - {"rng"}
    unknown = sorted(set(new.options) - options)
    if unknown:
        with about("options"):
            raise SettingsError(
                f"`options` of {new.policy} may be {sorted(options)}, but got {unknown}"
            )
    context, decision = _box(new.context, "context"), _box(new.decision, "decision")
    try:
        policy: Policy = makes(new.policy, context, decision, **dict[str, Any](new.options))
    except ContinuarmError as error:
        rule = re.match(r"`([^`]+)`", str(error))
        named = options.intersection(re.findall(r"\w+", rule[1]) if rule else ())
        error.field = f"options.{named.pop()}" if len(named) == 1 else "options"
        raise
    return policy


def _box(edges: Edges, field: str) -> Box:
    """A box; what is wrong with it says which of the two it is."""
    with about(field):
        if edges.units is not None and len(edges.units) != len(edges.low):
            raise SettingsError(f"`units` must be {len(edges.low)}, but got {edges.units}")
        box = Box(edges.low, edges.high, edges.names, spacing=edges.spacing, ending=edges.ending)
        found: Any = Polytope(box, edges.rows) if edges.rows else box
    return found  # type: ignore[no-any-return]


def changeable(new: NewExperiment) -> dict[str, Any]:
    """The options that a running experiment can be given."""
    policy = policy_of(new)
    return {name: getattr(policy, name) for name in Changes.__annotations__}


def _more(new: NewExperiment) -> dict[str, Any]:
    """Settings of the service itself."""
    more: dict[str, Any] = {} if new.outside == "refuse" else {"outside": new.outside}
    units = {"context": new.context.units, "decision": new.decision.units}
    given = {which: found for which, found in units.items() if found is not None}
    more |= {"units": given} if given else {}
    named = {} if new.payoff is None else to_builtins(new.payoff)
    more |= {"payoff": named} if named else {}
    return more if new.after is None else more | {"after": new.after}
