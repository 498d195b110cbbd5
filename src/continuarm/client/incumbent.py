"""What a client answers itself where the service does not answer in time."""

from collections.abc import Mapping
from itertools import count
from typing import Any

import numpy as np

from continuarm import checks
from continuarm.client.core import plain_of
from continuarm.errors import SettingsError
from continuarm.live.decision import Decision

__all__ = ["Incumbent", "incumbent_of", "is_own"]

PATIENCE = 0.2  # seconds


class Incumbent:
    """What is done today: a decision by name or in order, or a function of the context.

    patience : seconds that `ask` waits for the service, all its tries together.
    """

    def __init__(self, given: Any, patience: float) -> None:
        self._given = given
        self.patience = checks.number("patience", patience)
        self._numbers = count(1)

    def decision(self, context: Any) -> Decision:
        """The decision for a context; its number is below 0: the service knows nothing of it."""
        plain = plain_of(self._given(context) if callable(self._given) else self._given)
        by_name = plain if isinstance(plain, Mapping) else dict(enumerate(plain))
        numbers = plain_of(context)
        point = np.array(list(numbers.values()) if isinstance(numbers, dict) else numbers, float)
        value, names = np.array(list(by_name.values()), float), tuple(map(str, by_name))
        return Decision(-next(self._numbers), point, value, names, None, "incumbent")


def incumbent_of(given: Any, patience: float | None) -> Incumbent | None:
    """What a client was given; None: nothing."""
    if given is None:
        if patience is not None:
            raise SettingsError(f"`patience` needs an `incumbent`, but got patience={patience!r}")
        return None
    return Incumbent(given, PATIENCE if patience is None else patience)


def is_own(decision: Any) -> bool:
    """Whether a decision is one that a client made itself."""
    id_ = decision.id if isinstance(decision, Decision) else decision
    return isinstance(id_, int) and not isinstance(id_, bool) and id_ < 0
