"""Said: what is said of experiments as a whole, with their health.

A diagnosis looks at every bin. So the health that it ends in is kept for a while: looking takes at
most a fiftieth of the time.
"""

import json
import time
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from continuarm.errors import ContinuarmError, SettingsError
from continuarm.live.policy import Policy
from continuarm.service import seen, shown
from continuarm.service.beginnings import Beginnings
from continuarm.service.clock import ClockWatch
from continuarm.service.experiments import Experiments
from continuarm.service.naming import policy_named
from continuarm.service.reads import Read
from continuarm.service.refusals import refusal_of
from continuarm.service.running import Running

__all__ = ["Said"]

LEAST, TIMES = 1.0, 50.0  # seconds that a health is kept, and times as long as it took


class _Checked(NamedTuple):
    health: shown.Health
    bins: int
    position: int
    until: float
    alarm: bool


class Said:
    """How experiments fare."""

    def __init__(self, experiments: Experiments, watch: ClockWatch) -> None:
        self._experiments, self._watch = experiments, watch
        self._beginnings = Beginnings()
        self._checked: WeakKeyDictionary[Running, _Checked] = WeakKeyDictionary()

    def all(self, read: Read) -> shown.Experiments:
        """All that are not archived; those that cannot be opened, and those not opened yet."""
        found, unavailable, preparing = [], [], []
        for name in sorted({*self._experiments.names(), *self._experiments.preparing}):
            read.goes_on()
            if not self._experiments.is_prepared(name):
                preparing.append(name)
                continue
            try:
                found.append(self.of(self._experiments.find(name)))
            except ContinuarmError as error:
                refusal = refusal_of(error)
                unavailable.append(shown.Unavailable(name, refusal.error, refusal.message))
        return shown.Experiments(found, unavailable, preparing)

    def of(self, running: Running) -> shown.ExperimentSays:
        """An experiment as it is now."""
        found, policy = running.store.experiment(running.name), running.view()
        settings, checked = json.loads(found.settings), self._health(running)
        units: dict[str, Any] = settings.get("units", {})
        return shown.ExperimentSays(
            name=found.name,
            policy=policy_named(policy),
            archived=found.archived,
            paused=policy.paused,
            frozen=seen.frozen_seen(policy),
            health=checked.health,
            events=found.head,
            bins=checked.bins,
            one_bin=policy.has_one_bin,
            counts=_counts(running),
            payoff=seen.trend_of(
                policy, settings.get("payoff", {}), self._beginnings.of(running, found.begins)
            ),
            uplift=_uplift(policy),
            context=seen.box_seen(running.context, units.get("context")),
            decision=seen.box_seen(running.decision, units.get("decision")),
            options=seen.options_seen(policy, running.clips),
            settings=settings,
        )

    def diagnosis(self, running: Running) -> shown.Diagnosis:
        """What the checks of learning find now."""
        began, position, policy = time.monotonic(), running.replica.position, running.policy()
        findings, bins = policy.diagnose(), policy.stats().bins
        clock = self._watch.finding(running)
        if clock is not None:
            findings.insert(0, clock)
        found = seen.diagnosis_seen(findings)
        now, first = time.monotonic(), running not in self._checked  # the compiler is waited for
        until = now + (LEAST if first else max(LEAST, TIMES * (now - began)))
        self._checked[running] = _Checked(found.health, bins, position, until, clock is not None)
        return found

    def _health(self, running: Running) -> _Checked:
        kept, position = self._checked.get(running), running.replica.position
        alarm = self._watch.finding(running) is not None
        if (
            kept is None
            or kept.alarm != alarm
            or (kept.position != position and time.monotonic() > kept.until)
        ):
            self.diagnosis(running)
        return self._checked[running]


def _counts(running: Running) -> shown.Counts:
    stats = running.gate.alone(running.stats)
    names = ("asked", "told", "open", "expired", "forgotten")
    return shown.Counts(*(int(stats[name]) for name in names))


def _uplift(policy: Policy) -> shown.UpliftSays | None:
    try:
        return seen.uplift_seen(policy.uplift())
    except SettingsError:  # no share of decisions is the incumbent's
        return None
