"""Checks of what was fitted: curvature, edges, noise, and one payoff that rules."""

import math
from collections.abc import Iterable

import numpy as np
from scipy.special import chdtrc

from continuarm.core import notes
from continuarm.live.diagnosis.examined import Examined, ExaminedBin, named
from continuarm.live.diagnosis.findings import Finding
from continuarm.power import signal_needed

__all__ = ["SHOWN", "absurd_payoff", "at_the_edge", "held_by_max_move", "too_noisy"]
__all__ += ["wrong_curvature"]

UNLIKELY = 3e-3  # of all bins, to look so by chance; a policy is looked at many times
EDGE = 0.005  # of a side
PRESSED = 0.05  # of payoffs, in bins that are pressed against one edge
WORTH = 0.05  # of the mean payoff: an improvement that one would want to see
CURVED = 8.0  # times the payoff's range: its curvature, with the peak in the middle (eq. F2)
WHOLE = 0.5  # a reach within which lies the whole box
SHOWN = 5.0  # evidence, as a logarithm, that the decision matters
RULES = 0.5  # of all squared errors; or
RULED, CALM = 0.25, 0.05  # of them, and all later payoffs vary so much less than that
ABSURD = 300.0  # standard deviations, and
BEYOND_ALL = 2.0  # times what all payoffs together would be


def wrong_curvature(e: Examined) -> Iterable[Finding]:
    """The fitted surface bends upwards, significantly (one of several directions, many bins)."""
    found = []
    for one in e.fitted:
        bend, error = one.numbers["largest_bend"], one.numbers["bend_error"]
        if bend > 0.0 and error > 0.0:
            chance = float(chdtrc(one.numbers["bends"], (bend / error) ** 2))
            if chance * len(e.bins) < UNLIKELY:
                found.append((bend / error, one))
    if found:
        most, worst = max(found, key=lambda pair: pair[0])
        name = named(e.decision, worst.numbers["bends_most"])
        yield Finding(
            level="serious",
            name="curvature of the wrong sign",
            where=e.where([one for _, one in found]),
            evidence=most,
            measure=f"how surely payoffs bend upwards, mostly along {name}, in standard errors",
            advice="The best decision lies at an edge or there are several: split the box of "
            f"{name} where payoffs are lowest, and let one policy decide in each part.",
            bins=tuple(one.id for _, one in found),
        )


def at_the_edge(e: Examined) -> Iterable[Finding]:
    """The best decision known lies at an edge of the box."""
    settled = [one for one in e.bins if one.has >= 2.0 * one.needs]
    for j in range(e.decision.dim):
        name, low, high = named(e.decision, j), e.decision.low[j], e.decision.high[j]
        for side, edge in (("lower", float(low)), ("upper", float(high))):
            pressed = [one for one in settled if _is_pressed(one, j, side == "upper")]
            share = e.share(pressed)
            if share > PRESSED:
                yield Finding(
                    level="warning",
                    name="decisions at the edge",
                    where=e.where(pressed),
                    evidence=share,
                    measure=f"share of payoffs in bins whose best {name} is its {side} edge, "
                    f"{edge:g}",
                    advice=f"Widen the box of {name} {'above' if side == 'upper' else 'below'} "
                    f"{edge:g} if you can answer for it, because the best may lie beyond.",
                    bins=tuple(one.id for one in pressed),
                )


def _is_pressed(one: ExaminedBin, j: int, upper: bool) -> bool:
    at = 1.0 - one.best[j] if upper else one.best[j]
    return bool(at <= EDGE)


def held_by_max_move(e: Examined) -> Iterable[Finding]:
    """The best decision known is as far from the reference as it may be."""
    settled = [one for one in e.bins if one.has >= 2.0 * one.needs]
    for j in range(e.decision.dim):
        held = [one for one in settled if one.held[j]]
        share, name = e.share(held), named(e.decision, j)
        if share > PRESSED and e.max_move is not None:
            yield Finding(
                level="note",
                name="held by max_move",
                where=e.where(held),
                evidence=share,
                measure=f"share of payoffs in bins whose best {name} is as far from the reference "
                f"as max_move allows, {e.max_move[j]:g}",
                advice=f"Renew the reference if you agree with what was learned of {name}, or "
                "widen max_move, because the best may lie beyond.",
                bins=tuple(one.id for one in held),
            )


def too_noisy(e: Examined) -> Iterable[Finding]:
    """Nothing shows that the decision matters, and by its noise nothing could yet (eq. F10).

    The improvement is a part of the mean payoff, and the range of payoffs is taken to be as large
    as that mean. Where payoffs are not positive on average, parts of them say nothing.
    """
    fitted, mean = e.fitted, float(e.notes[notes.MEAN])
    if mean <= 0.0 or e.notes[notes.MOST_DECIDED] > SHOWN or _has_moved(e, fitted):
        return
    weights = [one.told + 1 for one in fitted]
    variance = float(np.average([one.numbers["noise"] ** 2 for one in fitted], weights=weights))
    signal = signal_needed(e.decision.dim) * e.decision.dim
    reach = min(float(e.reach.mean()) or WHOLE, WHOLE)
    shown = 2.0 * CURVED * WORTH * mean * mean * reach * reach / 3.0
    needed = min(signal * variance / max(shown, notes.SMALLEST), notes.MOST)
    more = math.ceil(max(one.needs for one in fitted) + needed - e.payoffs)
    if more > 0:
        yield Finding(
            level="warning",
            name="too noisy",
            where="overall",
            evidence=more,
            measure="more decisions until an improvement of "
            f"{WORTH:.0%} of the mean payoff ({WORTH * mean:.3g}) can be seen, at the earliest",
            advice="Wait for so many decisions before you judge it, or reduce the noise "
            f"({math.sqrt(variance):.3g} per payoff), or give it a wider reach.",
        )


def _has_moved(e: Examined, fitted: list[ExaminedBin]) -> bool:
    """Whether what is known to be best is, on average, further from the start than one reach."""
    numbers = [k for k, one in enumerate(e.bins) if one.is_fitted]
    far = [abs(e.bins[k].best - e.start[k]).max() for k in numbers]
    reach = float(e.reach.mean()) or 0.1
    return bool(np.average(far, weights=[one.told + 1 for one in fitted]) > reach)


def absurd_payoff(e: Examined) -> Iterable[Finding]:
    """One payoff has made most of a bin's squared errors, or is beyond all that came before."""
    calm = e.notes[notes.SQUARES] < CALM * e.notes[notes.JUDGED]
    most = RULED if calm else RULES
    settled = [one for one in e.fitted if one.has >= 2.0 * one.needs]
    ruled = [one for one in settled if one.numbers["one_payoff"] > most]
    if ruled:
        worst = max(ruled, key=lambda one: one.numbers["one_payoff"])
        yield Finding(
            level="serious",
            name="absurd payoff",
            where=e.where(ruled),
            evidence=worst.numbers["one_payoff"],
            measure="share of all squared errors that one payoff has made",
            advice="Look for a payoff that cannot be right, and start again without it, because "
            "nothing else counts beside it.",
            bins=tuple(one.id for one in ruled),
        )
    elif e.notes[notes.LARGEST] > max(ABSURD, BEYOND_ALL * math.sqrt(e.payoffs)):
        where = [one for one in e.bins if one.id == e.notes[notes.ITS_BIN]]
        yield Finding(
            level="warning",
            name="absurd payoff",
            where=e.where(where) if where else "overall",
            evidence=float(e.notes[notes.LARGEST]),
            measure=f"standard deviations that the payoff {e.notes[notes.ITS_PAYOFF]:.4g} was off",
            advice="Check where this payoff comes from, and refuse such payoffs before they are "
            "told.",
            bins=tuple(one.id for one in where),
        )
