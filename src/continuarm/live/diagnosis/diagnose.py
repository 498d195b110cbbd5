"""All checks together."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from continuarm.core import notes
from continuarm.core.compiling import Array
from continuarm.live.diagnosis.examined import Examined, widest
from continuarm.live.diagnosis.findings import Finding, Findings
from continuarm.live.diagnosis.of_contexts import idle_context, starving_bins
from continuarm.live.diagnosis.of_payoffs import drift, payoffs_by_delay, selective_loss
from continuarm.live.diagnosis.of_surfaces import (
    absurd_payoff,
    at_the_edge,
    held_by_max_move,
    too_noisy,
    wrong_curvature,
)

__all__ = ["CHECKS", "diagnosed"]

NO_SURFACE = "its learner has fitted no surface with standard errors"
NO_SURPRISE = "its learner does not say how well it foresaw payoffs"


class Check(NamedTuple):
    """A check, and what of a policy it needs."""

    name: str
    look: Callable[[Examined], Iterable[Finding]]
    surface: bool = False
    surprise: bool = False


CHECKS = (
    Check("curvature of the wrong sign", wrong_curvature, surface=True),
    Check("decisions at the edge", at_the_edge),
    Check("held by max_move", held_by_max_move),
    Check("too noisy", too_noisy, surface=True),
    Check("drift", drift, surprise=True),
    Check("starving bins", starving_bins),
    Check("absurd payoff", absurd_payoff, surface=True),
    Check("payoffs by delay", payoffs_by_delay, surprise=True),
    Check("selective loss", selective_loss),
)
IDLE = "context that does not matter"


def diagnosed(e: Examined, recommend_many: Callable[[Array], Array]) -> Findings:
    """What the checks find, and which of them could not be made."""
    found, unchecked = list[Finding](), dict[str, str]()
    for check in CHECKS:
        if check.surface and not e.fitted:
            unchecked[check.name] = NO_SURFACE
        elif check.surprise and e.notes[notes.JUDGED] == 0.0:
            unchecked[check.name] = NO_SURPRISE
        else:
            found += check.look(e)
    if e.context.dim and not any("moves" in one.numbers for one in e.fitted):
        unchecked[IDLE] = NO_SURFACE
    elif e.context.dim:
        found += idle_context(e, _moved(e, recommend_many))
    return Findings(found, e.payoffs, unchecked)


def _moved(e: Examined, recommend_many: Callable[[Array], Array]) -> Array:
    """By how much each context moves each coordinate, in the largest bins."""
    points = e.varied()
    values = recommend_many(points.reshape(-1, e.context.dim))
    units = e.decision.to_unit(values)
    return widest(units.reshape(*points.shape[:-1], e.decision.dim))
