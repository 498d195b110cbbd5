"""Experiments: those of a store that this process has opened, and how one is made."""

import asyncio
import re
from threading import Lock
from typing import Any

from msgspec import to_builtins
from starlette.requests import Request as HttpRequest

from continuarm.box import Box
from continuarm.errors import (
    ContinuarmError,
    ExperimentConflictError,
    SettingsError,
    StoreError,
    UnavailableError,
)
from continuarm.ledger.shared import begun
from continuarm.live.guarded import Changes
from continuarm.live.named import makes
from continuarm.live.named.by_name import maker_of
from continuarm.live.policy import Policy
from continuarm.service.fields import about
from continuarm.service.messages import Edges, NewExperiment
from continuarm.service.running import MAX_BEHIND, Helpers, Running
from continuarm.sets import Polytope
from continuarm.store.protocol import Store
from continuarm.store.rules import appendable

__all__ = ["Experiments", "changeable"]

MOST = 1000  # experiments
POLICIES = ("recommended", "static-kwsa", "adaptive-kwsa", "uniform-ucb")


class Experiments:
    """The experiments of a store.

    most : experiments, archived ones included.
    is_stopping : whether the process was told to end.
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
        self.refused: dict[str, str] = {}  # why one of the store does not run in here
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
        with self._opening:
            if name not in self._running:
                self._running[name] = Running(self.store, name, *self._lags, helpers=self._helpers)
            return self._running[name]

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
        if gone is not None:
            gone.close()

    def names(self) -> list[str]:
        """The names of those that are not archived."""
        return [one.name for one in self.store.experiments() if not one.archived]

    def open_all(self) -> None:
        """Have all running that are not archived; one of another version holds up no other."""
        refused: dict[str, str] = {}
        for experiment in self.store.experiments():
            if not experiment.archived and experiment.head > 0:
                try:
                    self.find(experiment.name)
                except UnavailableError:
                    raise
                except StoreError as error:
                    refused[experiment.name] = str(error)
        self.refused = refused

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
