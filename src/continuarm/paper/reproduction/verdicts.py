"""Whether a claim holds, in a word."""

from typing import TYPE_CHECKING

from continuarm.lab.measures import Interval
from continuarm.paper.reproduction.measures import seeds_by_horizon

if TYPE_CHECKING:
    import polars

__all__ = ["at_most", "below_one", "few_seeds", "power_row"]

NEAR = 0.05  # a power may be above the paper's by this
FEW = 5  # with fewer seeds, an interval that contains the limit decides nothing
UNSURE = "too few seeds to say"


def few_seeds(runs: "polars.DataFrame") -> bool:
    """Whether there are so few that some claims cannot be judged."""
    return min(seeds_by_horizon(runs).values()) < FEW


def power_row(
    claim: str, what: str, claimed: float, found: list[Interval], few: bool
) -> tuple[str, ...]:
    """A claim about a power, as printed and with the corrections."""
    cells = [cell for one in found for cell in (str(one), at_most(one, claimed, few))]
    return f"{claim}: {what} at most {claimed + NEAR:.3f}", f"{claimed:.3f}", *cells


def at_most(found: Interval, claimed: float, few: bool) -> str:
    """The paper's rates are upper bounds: less growth is better than claimed."""
    limit = claimed + NEAR
    straddles = found.low <= limit < found.high
    if few and straddles:
        return UNSURE
    if straddles:
        return f"{'no' if found.value > limit else 'yes'}, not surely"
    if found.value > limit:
        return "no"
    return "yes, with room" if found.value < claimed - NEAR else "yes"


def below_one(found: Interval, few: bool) -> str:
    """Whether a whole interval lies below 1."""
    if few and found.low < 1.0 <= found.high:
        return UNSURE
    return "yes" if found.high < 1.0 else "no"
