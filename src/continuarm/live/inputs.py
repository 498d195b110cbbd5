"""What a caller may hand to `tell`: checked, and refused with the rule that it breaks."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from continuarm.core.compiling import Array
from continuarm.core.draws import Key
from continuarm.errors import InputError, SettingsError, UnknownDecisionError
from continuarm.live import events
from continuarm.live.decision import Decision, Decisions
from continuarm.live.incumbent import Context
from continuarm.live.life import Life
from continuarm.live.tokens import Tokens
from continuarm.numbers import real

__all__ = ["Context", "Contexts", "Inputs", "Many", "Rows", "finite", "key_of"]

WHOLE = (int, np.integer)
Contexts = ArrayLike | Mapping[str, ArrayLike]
Rows = Contexts | None
Many = Decisions | ArrayLike


class Inputs:
    """What is told of the decisions of one policy, checked against its life."""

    __slots__ = ("life", "name", "tokens")

    def __init__(self, life: Life, tokens: Tokens, name: str) -> None:
        self.life, self.tokens, self.name = life, tokens, name

    def number_of(self, decision: Any, token: object = None) -> int:
        """The number of an open decision, which may be given instead of it, with its token."""
        id_, opened = decision, self.life.open
        if isinstance(decision, Decision):
            id_, token = decision.id, decision.policy
        if type(id_) is not int:
            if isinstance(id_, bool) or not isinstance(id_, WHOLE):
                raise UnknownDecisionError(
                    f"a Decision or its number is needed, but got {decision!r}"
                )
            id_ = int(id_)
        if token is not None and not self.tokens.marks(id_, token):
            raise UnknownDecisionError(
                f"the decision must be of this policy, but got {decision!r} of another"
            )
        if not opened.is_open(id_):
            raise opened.refusal(id_)
        if isinstance(decision, Decision):
            value = opened.value(id_)
            if decision.value is not value and not np.array_equal(decision.value, value):
                raise UnknownDecisionError(
                    f"decision {id_} must be {value.tolist()}, but got {decision!r}"
                )
        return id_

    def told(
        self, decisions: Many, payoffs: ArrayLike, gradients: Rows, done: Rows
    ) -> list[events.Told]:
        token = decisions.policy if isinstance(decisions, Decisions) else None
        ids = [self.number_of(id_, token) for id_ in _ids(decisions)]
        if isinstance(decisions, Decisions):
            self._check_values(ids, decisions.values)
        values = [self.payoff(payoff) for payoff in _listed(payoffs)]
        if len(values) != len(ids) or len(set(ids)) < len(ids):
            raise InputError(
                f"{len(ids)} different decisions need as many payoffs, but got "
                f"{len(set(ids))} different decisions and {len(values)} payoffs"
            )
        vectors: list[Any] = []
        for name, given in (("gradients", gradients), ("values", done)):
            arrays = self.life.beginning.decision.arrays
            vectors.append([None] * len(ids) if given is None else arrays(given))
            if len(vectors[-1]) != len(ids):
                raise InputError(f"{len(ids)} {name} are needed, but got {len(vectors[-1])}")
        return [
            events.Told(id_, value, self.gradient(slope), self.done(other))
            for id_, value, slope, other in zip(ids, values, *vectors, strict=True)
        ]

    def _check_values(self, ids: list[int], given: Any) -> None:
        """What is told is what was decided."""
        kept = np.array([self.life.open.value(id_) for id_ in ids])
        if np.shape(given) != kept.shape or not np.array_equal(given, kept):
            raise UnknownDecisionError(
                f"the decisions {ids} must be {kept.tolist()}, but got {given!r}"
            )

    def payoff(self, payoff: Any) -> float:
        value, largest = finite(payoff), self.life.model.largest_payoff
        if abs(value) > largest:
            raise InputError(f"the payoff must be within ±{largest:g}, but got {payoff!r}")
        return value

    def done(self, value: Context | None) -> Array | None:
        if value is None:
            return None
        if not self.life.takes_values:
            raise InputError(f"{self.name} learns from what it decided alone, but got {value!r}")
        point = self.life.beginning.decision.point(value)
        point.flags.writeable = False
        return point

    def gradient(self, gradient: ArrayLike | None) -> Array | None:
        if not self.life.model.uses_gradient:
            if gradient is not None:
                raise InputError(f"{self.name} takes no gradient, but got {gradient!r}")
            return None
        if gradient is None:
            raise InputError(f"{self.name} needs a gradient, but got None")
        slope = self.life.beginning.decision.array(gradient)
        if not np.isfinite(slope).all():
            raise InputError(f"the gradient must be finite, but got {slope.tolist()}")
        return slope


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


def _listed(payoffs: ArrayLike) -> list[Any]:
    """Payoffs, one after the other."""
    if hasattr(payoffs, "__array__") and np.ndim(payoffs):  # of NumPy, or a series
        payoffs = list(np.ma.asanyarray(payoffs))
    if not isinstance(payoffs, Sequence) or isinstance(payoffs, str | bytes | bytearray):
        raise InputError(f"a sequence is needed, but got {payoffs!r}")
    return list(payoffs)


def _ids(decisions: Decisions | ArrayLike) -> list[int]:
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
