"""What the paper's policies decide from the horizon and the curvature."""

import warnings
from typing import Any, Literal

from continuarm import checks
from continuarm.errors import SettingsError, StepWarning
from continuarm.paper import schedules

__all__ = ["Inherit", "chosen_bins", "chosen_splits", "chosen_step", "keeps_count"]

Inherit = Literal["iterate", "iterate-and-count"]
INHERITS = {"iterate": False, "iterate-and-count": True}


def keeps_count(inherit: Any) -> bool:
    """Whether a child continues its parent's count."""
    return bool(checks.choice("inherit", inherit, INHERITS))


def chosen_step(step: Any, curvature: Any) -> float:
    """The step given, or the middle of the interval of Proposition 1."""
    curvature = checks.optional(checks.number, "curvature", curvature)
    if step is not None:
        step = checks.number("step", step)
        if curvature is not None:
            _warn_step(step, curvature)
        return float(step)
    if curvature is None:
        raise SettingsError("`curvature` or `step` is needed, but got neither")
    middle = schedules.step(curvature)
    if not middle < 1e300:
        raise SettingsError(f"`curvature` must be large enough for a step, but got {curvature}")
    return middle


def _warn_step(step: float, curvature: float) -> None:
    """Warn about a step outside the interval of Proposition 1."""
    low, high = schedules.step_interval(curvature)
    if not low < step <= high:
        effect = "its rate is lost" if step <= low else "its regret grows by a constant factor"
        warnings.warn(
            f"`{low:.6g} < step <= {high:.6g}` is what the paper's rate needs at this curvature, "
            f"but got {step:.6g}: {effect}",
            StepWarning,
            stacklevel=4,
        )


def chosen_bins(bins: Any, horizon: Any, dx: int, dy: int, holder: float) -> int:
    """K, given or by the name of a rule."""
    horizon = checks.optional(checks.whole, "horizon", horizon, 1)
    if not isinstance(bins, str):
        return int(checks.whole("bins", bins, 1, 10**9))
    checks.choice("bins", bins, dict.fromkeys(schedules.BINS))
    horizon = checks.needed("horizon", horizon, f"for bins={bins!r}")
    return schedules.bins(bins, horizon, dx, dy, holder)


def chosen_splits(
    depth: Any, split_after: Any, horizon: Any, dx: int, dy: int, holder: float, largest: Any
) -> list[int]:
    """n_l for each level, depth and numbers given or by the names of rules."""
    horizon = checks.optional(checks.whole, "horizon", horizon, 1)
    largest = checks.optional(checks.number, "curvature_max", largest)
    if isinstance(depth, str):
        checks.choice("depth", depth, dict.fromkeys(schedules.DEPTHS))
        horizon = checks.needed("horizon", horizon, f"for depth={depth!r}")
        depth = schedules.depth(depth, horizon, dx, dy, holder)
    else:
        depth = checks.whole("depth", depth, 0, 50)
    if isinstance(split_after, str):
        checks.choice("split_after", split_after, dict.fromkeys(schedules.SPLITS))
    else:
        split_after = checks.wholes("split_after", split_after, 1)
    return schedules.split_after(split_after, depth if dx > 0 else 0, holder, largest)
