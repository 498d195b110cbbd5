"""What a caller may hand to `tell`: checked, and refused with the rule that it breaks."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from continuarm.core.draws import Key
from continuarm.errors import InputError, SettingsError
from continuarm.live.decision import Decisions
from continuarm.numbers import real

__all__ = ["decision_ids", "finite", "key_of", "listed"]


def key_of(rng: Any) -> Key:
    """The seed of all draws, 128 bits: of a whole number, of a generator, or a fresh one."""
    try:
        if isinstance(rng, np.random.Generator):
            return rng.integers(0, 2**64, 2, dtype=np.uint64)
        if isinstance(rng, bool):
            raise TypeError
        words: Key = np.random.SeedSequence(rng).generate_state(2, np.uint64)  # type: ignore[assignment]
        return words
    except (TypeError, ValueError):
        raise SettingsError(f"`rng` must be a seed or a Generator, but got {rng!r}") from None


def finite(payoff: Any) -> float:
    """A payoff."""
    value = real(payoff)
    if value is None:
        raise InputError(f"the payoff must be a finite number, but got {payoff!r}")
    return value


def listed(payoffs: ArrayLike) -> list[Any]:
    """Payoffs, one after the other."""
    if hasattr(payoffs, "__array__") and np.ndim(payoffs):  # of NumPy, or a series
        payoffs = list(np.ma.asanyarray(payoffs))
    if not isinstance(payoffs, Sequence) or isinstance(payoffs, str | bytes | bytearray):
        raise InputError(f"a sequence is needed, but got {payoffs!r}")
    return list(payoffs)


def decision_ids(decisions: Decisions | ArrayLike) -> list[int]:
    """The numbers of decisions."""
    given: Any = decisions.ids if isinstance(decisions, Decisions) else decisions
    if isinstance(given, np.ndarray) and given.ndim == 1:
        given = given.tolist()
    whole = isinstance(given, list | tuple | range) and all(
        isinstance(id_, int | np.integer) and not isinstance(id_, bool) for id_ in given
    )
    if not whole:
        raise InputError(f"`Decisions` or whole numbers are needed, but got {decisions!r}")
    return [int(id_) for id_ in given]
