"""What a client answers itself where the service does not answer in time."""

from itertools import count
from threading import Lock
from typing import Any

import numpy as np

from continuarm import checks
from continuarm.client.plain import Plain, array_of, plain_of
from continuarm.errors import SettingsError
from continuarm.live.decision import Decision

__all__ = ["Incumbent", "incumbent_of", "is_own"]

PATIENCE = 0.2  # seconds
KEYS = 10_000  # of the last answers that are kept


class Incumbent:
    """What is done today: a decision by name or in order, or a function of the context.

    patience : seconds that `ask` waits for the service, all its tries together.
    """

    def __init__(self, given: Any, patience: float) -> None:
        self._today = given if callable(given) else None
        self._fixed: Plain = [] if callable(given) else plain_of(given, "incumbent")
        self.patience = checks.number("patience", patience)
        self._numbers, self._names = count(1), tuple[str, ...]()
        self._keys, self._keeping = dict[str, None](), Lock()

    def answered(self, key: str | None) -> bool:
        """Whether this key was answered here: what the service decided for it is forgotten."""
        return key in self._keys

    def decision(self, given: Any, context: Plain, key: str | None) -> Decision:
        """The decision for a context; its number is below 0: the service knows nothing of it."""
        plain = self._plain(given)
        if key is not None:
            with self._keeping:
                self._keys[key] = None
                if len(self._keys) > KEYS:
                    del self._keys[next(iter(self._keys))]
        names = tuple(plain) if isinstance(plain, dict) else tuple(map(str, range(len(plain))))
        if self._names:
            names = self._names
            plain = [plain[name] for name in names] if isinstance(plain, dict) else plain
        value = array_of(plain)
        return Decision(-next(self._numbers), array_of(context), value, names, None, "incumbent")

    def _plain(self, given: Any) -> Plain:
        """What is done today for a context, as far as it is known refused if it is none."""
        found = self._fixed
        if self._today is not None:
            found = plain_of(self._today(given), "incumbent")
        names = list(self._names)
        fits = sorted(found) == sorted(names) if isinstance(found, dict) else True
        if names and not (fits and len(found) == len(names)):
            error = SettingsError(
                f"the names of `incumbent` must be {checks.among(names)}, but got "
                f"{checks.among(found) if isinstance(found, dict) else found}"
            )
            error.field = "incumbent"
            raise error
        return found

    def check(self) -> None:
        """Refuse one that is known to be none of the experiment's decisions."""
        if self._today is None:
            self._plain(None)

    def check_first(self, given: Any, names: tuple[str, ...]) -> None:
        """The same, when the service has said for a context what the names are."""
        if not self._names:
            self._names = names
            self._plain(given)


def incumbent_of(given: Any, patience: float | None) -> Incumbent | None:
    """What a client was given; None: nothing."""
    return None if given is None else Incumbent(given, PATIENCE if patience is None else patience)


def is_own(decision: Any) -> bool:
    """Whether a decision is one that a client made itself."""
    id_ = decision.id if isinstance(decision, Decision) else decision
    whole = isinstance(id_, int | np.integer) and not isinstance(id_, bool)
    return whole and bool(id_ < 0)
