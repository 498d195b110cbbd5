"""What became of decisions that are no longer open: counted, and remembered for a while.

It explains refusals and decides nothing, so it is no part of a life's state.
"""

from base64 import b64decode, b64encode
from typing import Any, Final, NamedTuple

from continuarm import checks
from continuarm.errors import (
    AlreadyToldError,
    ExpiredDecisionError,
    SavedFileError,
    UnknownDecisionError,
)
from continuarm.numbers import real

__all__ = ["EXPIRED", "FORGOTTEN", "TOLD", "Closings", "Stats"]

TOLD: Final = 1
FORGOTTEN: Final = 2
EXPIRED: Final = 3
MOST = 2**22  # decisions that are remembered, at two bits each
LATELY = 1000  # payoffs
KEEP = (0b11111100, 0, 0b11110011, 0, 0b11001111, 0, 0b00111111)  # all but two bits, by the shift


class Stats(NamedTuple):
    """How a policy has fared.

    asked, told, forgotten, expired : decisions, since the policy was made.
    open : those that wait for their payoff.
    held : those among the told that wait for the end of their time to live (`missing`).
    refused : what was refused in this process, by reason.
    bins : how many there are.
    payoffs_per_bin : how many payoffs each of them has learned, in the order of `policy.bins()`.
    mean_payoff : of the last thousand or so, the older ones counting less, with what silence is
        worth (`missing`); None before the first.
    """

    asked: int
    told: int
    open: int
    held: int
    expired: int
    forgotten: int
    refused: dict[str, int]
    bins: int
    payoffs_per_bin: list[int]
    mean_payoff: float | None


# How many were told, forgotten and expired, payoffs in the mean, the mean payoff.
Numbers = tuple[int, int, int, int, float]
# Where the fate of a decision is kept, the byte to keep there, and the numbers with it.
Note = tuple[int, int, Numbers]


class Closings:
    """How many decisions were told, forgotten and expired, and which of the last ones.

    A note of a closing is made first, and then taken over by two assignments (`strokes`):
    `closed.fates[byte], closed.numbers = bits, numbers`.
    """

    def __init__(self, remembered: int) -> None:
        self.numbers: Numbers = (0, 0, 0, 0, 0.0)
        self._most = min(remembered, MOST)
        self.fates = bytearray(self._most // 4 + 1)

    def copy(self) -> "Closings":
        """An independent one."""
        other = Closings(self._most)
        other.numbers, other.fates = self.numbers, self.fates.copy()
        return other

    @property
    def counts(self) -> list[int]:
        """How many decisions, by what became of them."""
        return [0, *self.numbers[:3]]

    @property
    def mean_payoff(self) -> float | None:
        """The mean of payoffs lately, if there were any."""
        return self.numbers[4] if self.numbers[3] else None

    def noted(self, id_: int, fate: int, payoff: float | None = None) -> Note:
        """The note that a decision is open no more, and what it or its silence is worth."""
        told, forgotten, expired, averaged, mean = self.numbers
        if payoff is not None:
            averaged += averaged < LATELY
            weight = 1.0 / averaged
            mean = (1.0 - weight) * mean + weight * payoff
        if fate == TOLD:
            told += 1
        elif fate == FORGOTTEN:
            forgotten += 1
        else:
            expired += 1
        place = id_ % self._most
        byte, shift = place >> 2, (place & 3) << 1
        bits = self.fates[byte] & KEEP[shift] | fate << shift
        return byte, bits, (told, forgotten, expired, averaged, mean)

    def unchanged(self) -> Note:
        """The note that nothing new is known."""
        return 0, self.fates[0], self.numbers

    def add(self, told: int, forgotten: int, expired: int) -> None:
        """Count decisions of a simulation, of which nobody will ask."""
        counts = self.numbers
        more = (counts[0] + told, counts[1] + forgotten, counts[2] + expired)
        self.numbers = (*more, *counts[3:])

    def first_known(self, next_id: int) -> int:
        """The oldest decision that is remembered."""
        return max(0, next_id - self._most)

    def refusal(self, id_: int, next_id: int, within: str) -> UnknownDecisionError:
        """Why no payoff can be told for a decision that is not open; `next_id` is not used yet."""
        if not 0 <= id_ < next_id:
            return UnknownDecisionError(
                f"the decision must have been handed out, but {id_} was not"
            )
        if id_ < self.first_known(next_id):
            return UnknownDecisionError(
                f"the decision must be open, but {id_} is too old to say whether it was told"
            )
        place = id_ % self._most
        fate = self.fates[place >> 2] >> ((place & 3) << 1) & 3
        if fate == TOLD:
            return AlreadyToldError(
                f"a decision is told once, but the payoff of {id_} was told before"
            )
        if fate == EXPIRED:
            return ExpiredDecisionError(
                f"a payoff must come within {within}, but decision {id_} has expired"
            )
        if fate == FORGOTTEN:
            return UnknownDecisionError(f"the decision must be open, but {id_} was forgotten")
        return UnknownDecisionError(f"the decision must be open, but {id_} is not")

    def to_plain(self) -> dict[str, Any]:
        """As plain values."""
        fates = b64encode(bytes(self.fates).rstrip(b"\0")).decode()
        mean = list(self.numbers[3:])
        return {"counts": self.counts, "mean_payoff": mean, "fates": fates}

    def restore(self, plain: Any) -> None:
        """Take over what `to_plain` gave."""
        try:
            counts = [checks.whole("counts", count, 0, 2**52) for count in plain["counts"]]
            averaged, mean = plain["mean_payoff"]
            averaged = checks.whole("averaged", averaged, 0, LATELY)
            fates = b64decode(plain["fates"], validate=True)
            if len(counts) != 4 or len(fates) > len(self.fates) or real(mean) is None:
                raise ValueError(f"{counts}, {mean}, {len(fates)} bytes")
        except (KeyError, TypeError, ValueError) as error:
            raise SavedFileError(f"closed decisions must be counted, but got {error}") from None
        self.numbers = (counts[1], counts[2], counts[3], averaged, float(mean))
        self.fates[: len(fates)] = fates
