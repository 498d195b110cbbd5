"""Settings: what all who share an experiment must have the same, as the store keeps it."""

import json
from typing import Any

from continuarm.errors import InputError
from continuarm.live import state
from continuarm.store.records import Experiment, Snapshot

__all__ = ["OF_POLICY", "check_fit", "settings_of"]

OF_POLICY = ("context", "decision", "partition", "learner", "start_given")
LONGEST_SHOWN = 60  # characters


def settings_of(experiment: Experiment) -> dict[str, Any]:
    """The settings of an experiment, if they are what a store could have been given."""
    text = experiment.settings
    try:
        found = json.loads(text)
    except (RecursionError, ValueError):
        found = None
    if not isinstance(found, dict):
        shown = text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
        raise InputError(
            f"they must be an object of JSON, as they were written, but are {shown!r}"
        )
    return found


def check_fit(settings: dict[str, Any], snapshot: Snapshot) -> None:
    """Refuse a state that is not that of a policy with the settings of the experiment."""
    _, _, content = snapshot.state.partition(b"\n")
    own = state.parts_of(content)[0]
    for field in OF_POLICY:
        if settings.get(field) != own.get(field):
            raise InputError(
                f"it must have the settings of the experiment, but {field} is {own.get(field)} "
                f"there and {settings.get(field)} here"
            )
