"""Checks of contexts: those that do not matter, and bins that starve."""

from collections.abc import Iterable

import numpy as np

from continuarm.core import notes
from continuarm.core.compiling import Array
from continuarm.live.diagnosis.examined import Examined, ExaminedBin, named
from continuarm.live.diagnosis.findings import Finding
from continuarm.live.diagnosis.of_surfaces import SHOWN

__all__ = ["idle_context", "starving_bins"]

LITTLE = 0.08  # of a side: how far a context moves the best decision that does not matter
AT_MOST = 0.12  # of a side: how far it may, two standard errors above what it seems to do
SURE = 2.0  # standard errors
YOUNG = 20.0  # times what a bin needs: payoffs of a policy whose bins are too young to starve
HUNGRY = 1.0 / 3.0  # of what a bin needs to learn anything
MANY_BINS, MANY_DECISIONS = 0.1, 0.02  # shares that starve
ASKED_ENOUGH, HARDLY = 50, 0.1  # decisions of a bin, and the share of them that is told
NEVER_TOLD, SILENT, FIRST = 0.05, 0.02, 1000


def idle_context(e: Examined, moved: Array) -> Iterable[Finding]:
    """A context that moves the best decision by next to nothing, as is known well enough.

    Nothing is known of that before payoffs show that the decision matters at all.

    moved : by how much each context moves each coordinate in the largest bins, as learned.
    """
    if e.notes[notes.MOST_DECIDED] < SHOWN:
        return
    bins = [one for one in e.fitted if "moves" in one.numbers]
    weights = [one.told + 1 for one in e.largest()]
    for i in range(e.context.dim):
        learned = float(np.average(moved[i].max(axis=1), weights=weights))
        at_most = _at_most(bins, i)
        if learned < LITTLE and at_most < AT_MOST:
            name = named(e.context, i)
            yield Finding(
                level="note",
                name="context that does not matter",
                where="overall",
                evidence=at_most,
                measure=f"how far {name} moves the best decision at most, as a share of its side",
                advice=f"Leave {name} out, unless it explains how high payoffs are, because with "
                "fewer contexts less has to be learned.",
            )


def _at_most(bins: list[ExaminedBin], i: int) -> float:
    """From one end of a context to the other, by all bins together, and where most in them."""
    widths = np.array([one.high[i] - one.low[i] for one in bins])[:, None]
    moves = np.array([one.numbers["moves"][i] for one in bins]) / widths
    errors = np.array([one.numbers["moves_error"][i] for one in bins]) / widths
    if not (errors > 0.0).all():
        return np.inf
    precise = errors**-2.0
    mean, spread = (moves * precise).sum(axis=0), precise.sum(axis=0)
    return float((abs(mean / spread) + SURE / np.sqrt(spread)).max())


def starving_bins(e: Examined) -> Iterable[Finding]:
    """Bins that get next to no payoffs."""
    yield from _few_contexts(e)
    yield from _hardly_told(e)


def _few_contexts(e: Examined) -> Iterable[Finding]:
    hungry = [one for one in e.bins if one.has < HUNGRY * one.needs]
    if not hungry or e.payoffs < YOUNG * max(one.needs for one in hungry):
        return
    of_asked = sum(one.asked for one in hungry) / max(e.asked, 1)
    if len(hungry) > MANY_BINS * len(e.bins) or of_asked > MANY_DECISIONS:
        yield Finding(
            level="warning",
            name="starving bins",
            where=e.where(hungry),
            evidence=len(hungry) / len(e.bins),
            measure=f"share of all {len(e.bins):,} bins that have not even a third of what they "
            "need to learn anything",
            advice="Take fewer bins, or leave out a context, because these bins will not learn.",
            bins=tuple(one.id for one in hungry),
        )


def _hardly_told(e: Examined) -> Iterable[Finding]:
    closed = e.asked - e.open
    silent = [
        one
        for one in e.bins
        if one.asked - one.open >= ASKED_ENOUGH and one.told < HARDLY * (one.asked - one.open)
    ]
    lost = e.unmade + sum(one.asked - one.open - one.told for one in silent)
    if lost > max(NEVER_TOLD * closed, ASKED_ENOUGH) and len(silent) < max(len(e.bins), 1):
        yield Finding(
            level="serious",
            name="starving bins",
            where=e.where(silent) if silent else "contexts of which no payoff ever came",
            evidence=lost / closed,
            measure="share of all decisions that were made where payoffs hardly ever come",
            advice="See why no payoffs are told for these contexts, or give `missing` if silence "
            "is a payoff.",
            bins=tuple(one.id for one in silent),
        )
    elif e.asked >= FIRST and e.payoffs < SILENT * e.asked:
        yield Finding(
            level="warning",
            name="starving bins",
            where="overall",
            evidence=e.payoffs / e.asked,
            measure="share of all decisions whose payoff has come",
            advice="See whether payoffs are told at all; give `missing` if silence is a payoff.",
        )
