"""What learners that fit a surface share: decisions that are uniform, and the surest way."""

import math

from continuarm.core.compiling import Array, compiled
from continuarm.core.guards import settle_unit
from continuarm.core.request import Request

__all__ = ["SURE", "decide_evenly", "happens", "surest", "uniform"]

STEPS = 64  # between the start and the peak
SURE = 2.0  # times the trust: where even so the peak is better than the start, it is the centre


@compiled
def uniform(xi: float, low: float, high: float) -> float:
    """A uniform number, from a standard normal one."""
    return 0.5 * (low + high) + 0.5 * (high - low) * math.erf(xi / math.sqrt(2.0))


@compiled
def happens(chance: float, xi: float) -> bool:
    """Whether what has this chance happens; a standard normal ξ is far out as often."""
    return bool(math.erfc(abs(xi) / math.sqrt(2.0)) < chance)


@compiled
def decide_evenly(request: Request, reaches: bool, side: float, work: Array, y: Array) -> None:
    """Uniform within reach of the start; without a reach in this part of each side of the box."""
    dy, region = y.shape[0], request.region
    low, high, lowest, highest = region.low, region.high, work[:dy], work[dy : 2 * dy]
    for j in range(dy):
        middle, half = 0.5 * (low[j] + high[j]), side * (0.5 * (high[j] - low[j]))
        bottom, top = middle - half, middle + half
        if reaches:
            start = min(max(request.start[j], low[j]), high[j])
            bottom = max(low[j], start - request.reach[j])
            top = min(high[j], start + request.reach[j])
        lowest[j], highest[j] = bottom, top
        y[j] = uniform(request.xi[j], bottom, top)
    settle_unit(region.guard, region, lowest, highest, request.start, work[2 * dy :], y)


@compiled
def surest(gain: float, bend: float, trust: float, aa: float, ab: float, bb: float) -> float:
    """Where between 0 and 1 the lower bound of what is gained is highest; 1, if that is sure."""
    if gain + bend > SURE * trust * math.sqrt(max(aa + 2.0 * ab + bb, 0.0)):
        return 1.0
    best = at = 0.0
    for step in range(1, STEPS + 1):
        t = step / STEPS
        error = math.sqrt(max(aa + t * (2.0 * ab + t * bb), 0.0))
        bound = t * (gain + t * bend - trust * error)
        if bound > best:
            best, at = bound, t
    return at
