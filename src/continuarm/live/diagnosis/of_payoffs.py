"""Checks of payoffs: those that drift, that go with their delay, that are lost by their kind."""

import math
from collections.abc import Iterable

import numpy as np

from continuarm.box import Box
from continuarm.core import notes
from continuarm.live.diagnosis.examined import Examined, named
from continuarm.live.diagnosis.findings import Finding

__all__ = ["drift", "payoffs_by_delay", "selective_loss"]

FOLLOWING = 0.3  # of the payoffs of a period, while the level was followed
ENOUGH = 50  # payoffs of a period
FEW = 20  # decisions that were lost, and as many told
SHIFTED, FAR = 0.5, 6.0  # standard deviations, of a payoff and of a period's mean
SURE = 5.0  # standard errors: many looks, many coordinates
TOGETHER = 0.05  # the least correlation of payoff and delay that is worth a word
VARIED = 0.01  # the least variance of a delay's logarithm
APART = 0.1  # standard deviations between what is lost and what is told
STILL_OPEN = 0.1  # of those lost: so few may be open in a period that counts


def drift(e: Examined) -> Iterable[Finding]:
    """In some period the level had to be followed, or payoffs were off on one side.

    The first does not count: a fit that is still bad looks like a level that moves.
    """
    periods = notes.by_time(e.notes)[1:]
    counts = periods[:, notes.COUNT]
    full = counts >= ENOUGH
    if not full.any():
        return
    followed = (periods[full, notes.FOLLOWED] / counts[full]).max()
    spread = math.sqrt(max(e.notes[notes.SQUARES] / e.notes[notes.JUDGED], 1.0))
    shifts = abs(periods[full, notes.SUM]) / counts[full] / spread
    surely = shifts * np.sqrt(counts[full]) > FAR
    shift = float(shifts[surely].max(initial=0.0))
    if followed > FOLLOWING:
        measure = "share of the payoffs of one period while whose level was moving"
        yield _drift(float(followed), measure)
    elif shift > SHIFTED:
        yield _drift(shift, "standard deviations that the payoffs of one period were off")


def _drift(evidence: float, measure: str) -> Finding:
    return Finding(
        level="warning",
        name="drift",
        where="overall",
        evidence=evidence,
        measure=measure,
        advice="Find out what changed, and give the policy a `memory` if it goes on changing.",
    )


def payoffs_by_delay(e: Examined) -> Iterable[Finding]:
    """What was not foreseen of payoffs goes with how late they came."""
    n, delays, squares = e.notes[notes.LATE : notes.LATE_SUM]
    if n < ENOUGH:
        return
    q, qq, qd, qqd, qqdd = e.notes[notes.LATE_SUM : notes.TIME]
    mean = delays / n
    variance, product = squares / n - mean * mean, qd - mean * q
    of_products = qqdd - 2.0 * mean * qqd + mean * mean * qq
    if variance < VARIED or of_products <= 0.0 or qq <= 0.0:
        return
    correlation = float(product / math.sqrt(n * variance * qq))
    if abs(product) > SURE * math.sqrt(of_products) and abs(correlation) > TOGETHER:
        later, sooner = ("higher", "lower") if correlation > 0.0 else ("lower", "higher")
        yield Finding(
            level="warning",
            name="payoffs by delay",
            where="overall",
            evidence=correlation,
            measure="correlation of what was not foreseen of payoffs with the logarithm of "
            "their delay",
            advice=f"Late payoffs are {later}, so what is known of the last days is {sooner} "
            "than the truth: wait for all of them with `missing` and `ttl`.",
        )


def selective_loss(e: Examined) -> Iterable[Finding]:
    """Decisions whose payoff is lost differ from those whose payoff came.

    They are compared with others that were asked for at the same time, in periods of which next to
    all are told or lost: what is lost is known later than what is told.
    """
    fates, points = notes.by_asking(e.notes)
    width = e.notes[notes.ASKED]
    asked = np.clip(e.asked - width * np.arange(len(fates)), 0.0, width)
    told, lost = fates[:, notes.TOLD_OF], fates[:, notes.LOST_OF]
    closed = (asked - told - lost <= STILL_OPEN * lost) & (told > 1) & (lost > 1)
    if min(lost[closed].sum(), told[closed].sum()) < FEW:
        return
    n = fates[closed][:, None, :]
    means = points[closed][..., 0] / n
    squares = points[closed][..., 1] - means**2 * n
    variance = np.maximum(squares.sum(axis=2) / (n.sum(axis=2) - 2.0), 0.0)
    weights = n.prod(axis=2) / n.sum(axis=2)
    differences = (weights * (means[..., 1] - means[..., 0])).sum(axis=0)
    spread = np.sqrt((weights * variance).sum(axis=0))
    known = spread > 1e-9 * np.sqrt(weights.sum())
    scores = np.where(known, differences, 0.0) / np.where(known, spread, 1.0)
    apart = scores / np.sqrt(weights.sum())
    yield from _lost(e, scores, apart, float(lost.sum() / (told.sum() + lost.sum())))


def _lost(e: Examined, scores: np.ndarray, apart: np.ndarray, share: float) -> Iterable[Finding]:
    """The coordinate that goes with loss most surely; what goes with it may go with loss, too."""
    found = np.where(abs(apart) > APART, abs(scores), 0.0)
    if found.max(initial=0.0) < SURE:
        return
    k, of_context = int(found.argmax()), min(e.context.dim, notes.MOST_WATCHED)
    box: Box = e.context if k < of_context else e.decision
    name = named(box, k if k < of_context else k - of_context)
    high = "high" if apart[k] > 0.0 else "low"
    yield Finding(
        level="serious",
        name="selective loss",
        where="overall",
        evidence=float(apart[k]),
        measure=f"standard deviations by which {name} is higher where the payoff is lost "
        f"({share:.1%} are)",
        advice=f"See why payoffs are lost where {name} is {high}, because what is learned there "
        "comes from the others alone.",
    )
