"""What a first day can cost, from the log of the present rule.

The rule is taken to be affine in the context. A quadratic in what the decisions deviate from it is
fitted to the payoffs by least squares (docs/first-day.md, eq. F13).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from continuarm import checks
from continuarm.box import Box
from continuarm.core.compiling import Array
from continuarm.core.learners.surface.layout import LARGEST_PAYOFF
from continuarm.errors import InputError
from continuarm.live.life import LEAST_OF_REACH
from continuarm.live.log_rule import reach_of, rule_of
from continuarm.live.warm_start import log_columns
from continuarm.planning.first_day import FirstDay, amount
from continuarm.power import LEVEL, signal_needed

__all__ = ["Fit", "first_day_of_log", "fit"]

NO_SPREAD = 1e-6  # of the side of a box
SURE = 2.0  # standard errors
ROWS_PER_COLUMN = 3
NO_NOISE = 1e-12  # of the largest payoff
USUAL_REACH = 0.1


@dataclass(frozen=True, kw_only=True)
class Fit:
    """What a log says about its rule: C with its standard error, and the slope's χ² (eq. F13)."""

    rows: int
    mean: float
    lowest: float
    noise: float
    curvature: float
    curvature_error: float
    slope: float
    deviation: Array

    @property
    def bends(self) -> bool:
        """Whether the payoff is seen to bend down."""
        return self.curvature > SURE * self.curvature_error

    @property
    def most(self) -> float:
        """The largest curvature that may be: its upper confidence bound, or the one with which
        the ends of the box earn the lowest payoff of the log (eq. F2)."""
        bound = max(self.curvature, 0.0) + SURE * self.curvature_error
        return min(bound, 8.0 * (self.mean - self.lowest))

    @property
    def least(self) -> float | None:
        """The lower confidence bound; None: the log does not say."""
        return self.curvature - SURE * self.curvature_error if self.bends else None

    @property
    def leans(self) -> bool:
        """Whether a slope at the rule is seen."""
        return self.slope > stats.chi2.ppf(1.0 - LEVEL, len(self.deviation))


def fit(context: Array, decision: Array, payoff: Array) -> Fit:
    """Fit contexts `(n, dx)` and decisions `(n, dy)`, both on unit cubes, and payoffs `(n,)`."""
    dy = decision.shape[1]
    columns, deviation = _columns(context, decision)
    theta, covariance, variance = _least_squares(columns, payoff)
    slope, bends = theta[:dy], slice(dy, 2 * dy)
    return Fit(
        rows=len(payoff),
        mean=float(payoff.mean()),
        lowest=float(payoff.min()),
        noise=math.sqrt(variance),
        curvature=float(theta[bends].sum()),
        curvature_error=math.sqrt(float(covariance[bends, bends].sum())),
        slope=float(slope @ np.linalg.pinv(covariance[:dy, :dy]) @ slope),
        deviation=np.sqrt((deviation**2).mean(axis=0)),
    )


def _columns(context: Array, decision: Array) -> tuple[Array, Array]:
    """The features, slopes and curvatures first; what decisions deviate from the log's rule."""
    u = 2.0 * context - 1.0
    rule = np.column_stack([np.ones(len(u)), u])
    deviation = decision - rule @ np.linalg.lstsq(rule, decision)[0]
    return np.column_stack([deviation, -0.5 * deviation**2, rule, u**2]), deviation


def _least_squares(columns: Array, payoff: Array) -> tuple[Array, Array, float]:
    """Coefficients, their covariance, and the variance of the noise."""
    size = np.linalg.norm(columns, axis=0)
    size[size == 0.0] = 1.0
    inverse = np.linalg.pinv(columns / size) / size[:, None]
    theta = inverse @ payoff
    left = payoff - columns @ theta
    variance = float(left @ left) / (len(payoff) - columns.shape[1])
    return theta, variance * inverse @ inverse.T, variance


def first_day_of_log(
    table: Any,
    *,
    payoff: str,
    context: Box,
    decision: Box,
    decisions: int = 5000,
    improvement: float = 0.05,
    reach: float = 0.1,
    budget: float | None = None,
    range: float | None = None,
) -> FirstDay:
    """What a first day can cost and show, from a log of the present rule.

    Parameters
    ----------
    table : named columns of numbers, one row per decision: a mapping or a data frame.
    payoff : the name of the payoffs' column.
    context, decision : boxes whose names are those of the other columns.
    range : of the payoff over the box, if it is known better than from the log.
    decisions, improvement, reach, budget : as for `first_day`.
    """
    range = checks.optional(amount, "range", range)
    x, y, z = log_columns(table, payoff, context, decision)
    _check(context.to_unit(x), decision, decision.to_unit(y), z, range)
    found = fit(context.to_unit(x), decision.to_unit(y), z)
    if found.mean <= 0.0:
        raise InputError(f"a log whose mean payoff is above 0 is needed, but got {found.mean:.4g}")
    curvature = (found.curvature if found.bends else found.most) if range is None else 8.0 * range
    return FirstDay(
        decisions=decisions,
        noise=found.noise,
        curvature=curvature,
        gain=amount("improvement", improvement) * found.mean,
        reach=reach,
        dimensions=decision.dim,
        contexts=context.dim,
        mean=found.mean,
        range=range,
        flattest=found.least if range is None else 2.0 * range,
        budget=budget,
        notes=(*_notes(found, curvature, range), _own_reach(context, decision, x, y)),
    )


def _own_reach(context: Box, decision: Box, x: Array, y: Array) -> str:
    """How far a policy that has learned the log may try."""
    own = reach_of(rule_of(context, decision, x, y), x, y, LEAST_OF_REACH * USUAL_REACH)
    parts = ", ".join(f"{part:.2g}" for part in own)
    return f"A policy that has learned this log has a reach of {parts} of the box."


def _check(x: Array, decision: Box, y: Array, z: Array, range: float | None) -> None:
    """Refuse a log that cannot say anything."""
    least = ROWS_PER_COLUMN * (1 + 2 * x.shape[1] + 2 * y.shape[1])
    if len(z) < least:
        raise InputError(f"a log of at least {least} rows is needed, but got {len(z)}")
    if np.abs(z).max() > LARGEST_PAYOFF:
        raise InputError(
            f"payoffs of a log must be within ±{LARGEST_PAYOFF:g}, but got {z[np.abs(z).argmax()]}"
        )
    if np.ptp(z) <= NO_NOISE * np.abs(z).max():
        raise InputError(f"a log whose payoffs differ is needed, but all are {z[0]}")
    spread = np.sqrt((_columns(x, y)[1] ** 2).mean(axis=0))
    if range is None and spread.min() <= NO_SPREAD:
        name = decision.names[int(spread.argmin())]
        raise InputError(
            "decisions that deviate from the log's own rule are needed, or the payoff's `range`, "
            f"but {name!r} follows from the context"
        )


def _notes(found: Fit, curvature: float, range: float | None) -> tuple[str, ...]:
    """What the log can say and what it cannot."""
    spread = ", ".join(f"{part:.2g}" for part in found.deviation)
    notes = [
        f"The log has {found.rows:,} rows with mean payoff {found.mean:.4g}. Its decisions "
        f"deviate from its own rule by {spread} of the box (standard deviation)."
    ]
    estimate = f"{found.curvature:.3g} ± {found.curvature_error:.3g}"
    if range is not None:
        notes.append("The curvature comes from the range that was given.")
    elif found.bends:
        notes.append(f"The log shows a curvature of {estimate} (standard error).")
    else:
        notes.append(
            f"The log does not show a curvature ({estimate}, standard error): the largest that "
            f"may be, {curvature:.3g}, is used. So costs are at most these, and decisions until "
            "seen at least these."
        )
    return (*notes, *_shown(found, curvature))


def _shown(found: Fit, curvature: float) -> list[str]:
    """What the log alone shows of an improvement: eq. F9 with its own deviations."""
    dy, information = len(found.deviation), found.rows * float((found.deviation**2).mean())
    if found.deviation.max() <= NO_SPREAD:
        return []
    gain = signal_needed(dy) * dy * found.noise**2 / (2.0 * curvature * information)
    seen = "it shows one: teach it with `learn_from`" if found.leans else "it shows none"
    return [
        f"The log alone could show an improvement of {100.0 * gain / found.mean:.3g} % at best; "
        f"{seen}."
    ]
