"""History: what decisions have paid over time, ours and the incumbent's, in a fixed size.

Payoffs are counted in buckets of equal size, in the order in which they are learned. When all
buckets are full, they are merged in pairs, and each holds twice as many.
"""

from typing import Any, NamedTuple

from continuarm import checks

__all__ = ["LARGEST", "Bucket", "History", "history_of"]

BUCKETS = 64
SIZE = 6  # of a bucket: how many were ours, their sum, their squares; the same of the incumbent's
LARGEST = 1e100  # payoff: squares must stay finite
MOST = 2**52  # payoffs
SLACK = 1.0 + 1e-6  # sums are rounded


class Bucket(NamedTuple):
    """Payoffs in a row: those of ours, or of the incumbent's."""

    first: int  # how many had come before
    last: int
    counted: int
    mean: float
    error: float | None  # standard; None: of fewer than two


class History:
    """What was paid so far.

    width : payoffs in a full bucket.
    pauses : whether the policy was ever paused, so that decisions may be the incumbent's.
    """

    __slots__ = ("numbers", "pauses", "told", "width")

    def __init__(
        self,
        numbers: list[float] | None = None,
        told: int = 0,
        width: int = 1,
        pauses: bool = False,
    ) -> None:
        self.numbers = [0.0] * (BUCKETS * SIZE) if numbers is None else numbers
        self.told, self.width, self.pauses = told, width, pauses

    def copy(self) -> "History":
        """An independent one."""
        return History(self.numbers.copy(), self.told, self.width, self.pauses)

    def with_room(self) -> "History":
        """The same with room for one more payoff."""
        if self.told < BUCKETS * self.width:
            return self
        merged = []
        for k in range(0, BUCKETS * SIZE, 2 * SIZE):
            merged += [self.numbers[i] + self.numbers[i + SIZE] for i in range(k, k + SIZE)]
        empty = [0.0] * (BUCKETS * SIZE - len(merged))
        return History(merged + empty, self.told, 2 * self.width, self.pauses)

    def place(self, theirs: bool) -> int:
        """Where the next payoff is counted: that it is, its sum, its square."""
        return self.told // self.width * SIZE + (SIZE // 2 if theirs else 0)

    def buckets(self, *, theirs: bool) -> list[Bucket]:
        """Those that hold any payoff of ours, or of the incumbent's."""
        found = []
        for k in range(BUCKETS):
            begin = k * SIZE + (SIZE // 2 if theirs else 0)
            n, total, squares = self.numbers[begin : begin + SIZE // 2]
            if n > 0.0:
                mean = total / n
                spread = max(squares / n - mean * mean, 0.0) / max(n - 1.0, 1.0)
                last = min((k + 1) * self.width, self.told)
                error = spread**0.5 if n > 1.0 else None
                found.append(Bucket(k * self.width, last, int(n), mean, error))
        return found


def history_of(header: Any, numbers: list[float]) -> History:
    """The history that somebody has written."""
    told, width, pauses = header
    history = History(
        numbers,
        checks.whole("told", told, 0, MOST),
        checks.whole("width", width, 1, MOST),
        checks.flag("pauses", pauses),
    )
    wanted = [min(max(told - k * width, 0), width) for k in range(BUCKETS)]
    if len(numbers) != BUCKETS * SIZE or width & (width - 1) or told > BUCKETS * width:
        raise ValueError(f"a history has {BUCKETS} buckets, but got {header} and {len(numbers)}")
    for k, size in enumerate(wanted):
        ours, theirs = numbers[k * SIZE], numbers[k * SIZE + SIZE // 2]
        whole = all(n >= 0.0 and n % 1 == 0.0 for n in (ours, theirs))
        if not whole or ours + theirs != size:
            raise ValueError(f"bucket {k} must hold {size} payoffs, but got {ours} and {theirs}")
        for begin in (k * SIZE, k * SIZE + SIZE // 2):
            n, total, squares = numbers[begin : begin + SIZE // 2]
            most = SLACK * n * LARGEST
            if not (abs(total) <= most and 0.0 <= squares <= most * LARGEST):
                raise ValueError(f"payoffs must be within ±{LARGEST:g}, but got {total}")
    return history
