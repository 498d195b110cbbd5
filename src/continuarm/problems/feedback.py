"""When payoffs arrive in a simulation: at once, late, or never."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from continuarm import checks
from continuarm.errors import SettingsError
from continuarm.own_code import OwnCode

__all__ = ["AT_ONCE", "Feedback", "feedback"]

NEVER = np.iinfo(np.int64).max
LONGEST = 2.0**53
Delays = Callable[[np.random.Generator, int], Any]


class Feedback(NamedTuple):
    """How many decisions a payoff takes, and which part of all payoffs is lost."""

    delay: int | Delays = 0
    lost: float = 0.0

    @property
    def at_once(self) -> bool:
        """Whether each payoff is there before the next decision."""
        return self.delay == 0 and self.lost == 0.0

    @property
    def in_words(self) -> str:
        """As titles say it, `delay 100, 0.2 of payoffs lost`; empty where all come at once."""
        delay = "random delays" if callable(self.delay) else f"delay {self.delay:,}"
        parts = [delay] if self.delay != 0 else []
        return ", ".join([*parts, f"{self.lost:.3g} of payoffs lost"] if self.lost else parts)

    def draw(self, rng: np.random.Generator, n: int) -> NDArray[np.int64]:
        """The delays of the next `n` payoffs; NEVER for one that is lost."""
        lost = rng.random(n) < self.lost
        if callable(self.delay):
            with OwnCode(SettingsError, f"`delay(rng, {n})` must give {n} numbers >= 0"):
                drawn = np.asarray(self.delay(rng, n))
            if drawn.shape != (n,) or drawn.dtype.kind not in "iuf" or not (drawn >= 0).all():
                raise SettingsError(
                    f"`delay(rng, {n})` must give {n} numbers >= 0, but got {drawn!r}"
                )
            delays = np.minimum(np.floor(drawn), LONGEST).astype(np.int64)
        else:
            delays = np.full(n, self.delay, np.int64)
        return np.where(lost, NEVER, delays)


AT_ONCE = Feedback()


def feedback(delay: Any, lost: Any) -> Feedback:
    """Check what a user says about feedback; a distribution of scipy.stats is a delay, too."""
    if hasattr(delay, "rvs"):
        distribution = delay

        def delay(rng: np.random.Generator, n: int) -> Any:
            return distribution.rvs(size=n, random_state=rng)

    elif not callable(delay):
        delay = checks.whole("delay", delay, 0)
    return Feedback(delay, checks.number("lost", lost, most=1.0, zero=True))
