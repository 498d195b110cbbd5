"""Options that several policies share."""

import warnings
from typing import Literal

from continuarm import schedules
from continuarm.errors import SettingsError, StepWarning
from continuarm.learners.kiefer_wolfowitz import ALTERNATE, CENTRAL, FORWARD

__all__ = ["INHERITS", "PROBES", "Inherit", "Probe", "resolve_step", "warn_step"]

Probe = Literal["forward", "alternate", "central"]
Inherit = Literal["iterate", "iterate-and-count"]
PROBES = {"forward": FORWARD, "alternate": ALTERNATE, "central": CENTRAL}
INHERITS = {"iterate": False, "iterate-and-count": True}


def warn_step(step: float, curvature: float) -> None:
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


def resolve_step(step: float | None, curvature: float | None) -> float:
    """The step given, or the middle of its interval."""
    if step is not None:
        return step
    if curvature is None:
        raise SettingsError("`curvature` or `step` is needed, but got neither")
    step = schedules.step(curvature)
    if not step < 1e300:
        raise SettingsError(f"`curvature` must be large enough for a step, but got {curvature}")
    return step
