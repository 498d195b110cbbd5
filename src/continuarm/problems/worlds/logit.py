"""Personalised prices under a multinomial logit with an outside option.

A customer with appeal α(x) and price sensitivity b(x), both affine in the context, buys product i
at prices p with probability `s_i = e^(α_i - b p_i) / (1 + Σ_j e^(α_j - b p_j))`, or nothing. The
payoff is the margin `p_i - cost_i` of what was bought, or 0. At the optimum all margins are equal:
`b m = 1 + W(Σ_j e^(α_j - b cost_j - 1))`, W Lambert's function.
"""

import json
from importlib.resources import files

import numpy as np

from continuarm.box import Box
from continuarm.checks import whole
from continuarm.core.compiling import Array, compiled
from continuarm.errors import SettingsError
from continuarm.problems.definition import Contexts, Problem
from continuarm.problems.entry import SUITE_AND_NAMED, Entries, Entry
from continuarm.problems.worlds.demand import buys_one_or_none, mean_margin

__all__ = ["WORLDS", "lambert", "logit_demand", "orange_juice"]

ORANGE_JUICE = files("continuarm.problems") / "orange_juice.json"


@compiled
def _affine(coefficients: Array, x: Array) -> float:
    total = coefficients[0]
    for j in range(x.shape[0]):
        total += coefficients[1 + j] * x[j]
    return total  # type: ignore[no-any-return]


@compiled
def _shares(x: Array, p: Array, appeal: Array, sensitivity: Array, shares: Array) -> float:
    """Fill the probabilities; the price sensitivity."""
    b, total = _affine(sensitivity, x), 1.0
    for i in range(p.shape[0]):
        shares[i] = np.exp(_affine(appeal[i], x) - b * p[i])
        total += shares[i]
    for i in range(p.shape[0]):
        shares[i] /= total
    return b


@compiled
def lambert(z: float) -> float:
    """W(z) for z > 0 by Halley's iteration."""
    w = np.log1p(z)
    for _ in range(50):
        e = np.exp(w)
        gap = w * e - z
        change = gap / (e * (w + 1.0) - (w + 2.0) * gap / (2.0 * w + 2.0))
        w -= change
        if abs(change) <= 1e-15 * (1.0 + abs(w)):
            break
    return w  # type: ignore[no-any-return]


def _problem(
    context: Box,
    decision: Box,
    appeal: Array,
    sensitivity: Array,
    costs: Array,
    contexts: Contexts | None,
    sample: Array,
) -> Problem:
    """`sample` are contexts at which the curvatures are looked for."""
    dy = decision.dim

    def fill_chances(x: Array, p: Array, shares: Array) -> None:
        _shares(x, p, appeal, sensitivity, shares)

    def best_decision(x: Array) -> Array:
        b, total = _affine(sensitivity, x), 0.0
        for i in range(dy):
            total += np.exp(_affine(appeal[i], x) - b * costs[i] - 1.0)
        return costs + (1.0 + lambert(total)) / b

    def gradient(x: Array, p: Array) -> Array:
        out = np.empty(dy)
        b = _shares(x, p, appeal, sensitivity, out)
        profit = mean_margin(p, costs, out)
        for i in range(dy):
            out[i] *= 1.0 - b * (p[i] - costs[i] - profit)
        return out

    mean_payoff, sample_payoff = buys_one_or_none(compiled(fill_chances), costs)
    low, high = _curvatures(decision, appeal, sensitivity, costs, sample)
    return Problem(
        context=context,
        decision=decision,
        mean_payoff=mean_payoff,
        best_decision=best_decision,
        sample_payoff=sample_payoff,
        gradient=gradient,
        curvature=low,
        curvature_max=high,
        contexts="uniform" if contexts is None else contexts,
    )


def _curvatures(
    decision: Box, appeal: Array, sensitivity: Array, costs: Array, contexts: Array
) -> tuple[float, float]:
    """Extreme eigenvalues of minus the Hessian on the unit cube, over a grid of prices."""
    dy = decision.dim
    axes = np.meshgrid(*[np.linspace(0.0, 1.0, 9)] * dy, indexing="ij")
    prices = decision.from_unit(np.stack([axis.ravel() for axis in axes], axis=1))
    low, high = np.inf, 0.0
    for x in contexts:
        b = sensitivity[0] + sensitivity[1:] @ x
        odds = np.exp(appeal[:, 0] + appeal[:, 1:] @ x - b * prices)
        s = odds / (1.0 + odds.sum(axis=1, keepdims=True))
        margins = prices - costs
        slope = 1.0 - b * (margins - (margins * s).sum(axis=1, keepdims=True))  # gradient / s
        across = b * s[:, :, None] * s[:, None, :] * (slope[:, :, None] + slope[:, None, :])
        own = b * s * (1.0 + slope)
        hessian = across - own[:, :, None] * np.eye(dy)
        eigenvalues = np.linalg.eigvalsh(-hessian * np.outer(decision.span, decision.span))
        low, high = min(low, float(eigenvalues.min())), max(high, float(eigenvalues.max()))
    return low, high


def logit_demand(*, dx: int = 2, dy: int = 3, seed: int = 0) -> Problem:
    """Prices of `dy` products for customers of `dx` traits in [0,1]; the traits' effect is random.

    The box of prices is small enough for the mean payoff to be concave in it.
    """
    dx, dy = whole("dx", dx, 0), whole("dy", dy, 1)
    if dy > 5:
        raise SettingsError(f"`dy <= 5` must hold, but got {dy}")
    rng = np.random.default_rng(whole("seed", seed, 0))
    weight = 0.4 / max(dx, 1)
    levels = rng.uniform(0.5, 1.0, dy) - np.log(dy)
    appeal = np.column_stack([levels, weight * rng.uniform(-1.0, 1.0, (dy, dx))])
    sensitivity = np.append(1.0, weight * rng.uniform(-0.5, 0.5, dx))
    costs = rng.uniform(0.5, 1.0, dy)
    low, high = _margins(appeal, sensitivity, costs)
    box = Box(costs + 0.6 * low, costs + 1.05 * high)
    sample = np.unique(rng.integers(0, 3, (200, dx)), axis=0) / 2.0  # corners, edges, centre
    return _problem(Box.unit(dx), box, appeal, sensitivity, costs, None, sample)


def _margins(appeal: Array, sensitivity: Array, costs: Array) -> tuple[float, float]:
    """Bounds of the best margin over the cube: it rises with α and falls with b."""
    ends = []
    for sign in (-1.0, 1.0):
        alpha = appeal[:, 0] + sign * np.maximum(sign * appeal[:, 1:], 0.0).sum(axis=1)
        b = sensitivity[0] - sign * np.maximum(-sign * sensitivity[1:], 0.0).sum()
        ends.append((1.0 + lambert(float(np.exp(alpha - b * costs - 1.0).sum()))) / b)
    return float(ends[0]), float(ends[1])


def orange_juice() -> Problem:
    """Prices of three orange juices in 80 supermarkets, fitted to public scanner data.

    The data's provenance stands in the file. Contexts are the demographics of the 80 stores, drawn
    with equal probability; concavity and interior optima are promised only at those.
    """
    data = json.loads(ORANGE_JUICE.read_text("utf-8"))
    stores = np.array([store["demographics"] for store in data["stores"]])
    names = [name.lower() for name in data["demographics"]]
    brands = ["tropicana", "minute_maid", "dominicks"]

    def contexts(rng: np.random.Generator, n: int) -> Array:
        return stores[rng.integers(0, len(stores), n)]

    return _problem(
        Box(stores.min(axis=0), stores.max(axis=0), names),
        Box(data["price_low"], data["price_high"], brands),
        np.array(data["appeal_coefficients"]),
        np.array(data["price_sensitivity_coefficients"]),
        np.array(data["unit_costs"]),
        contexts,
        stores,
    )


WORLDS: Entries = {
    "logit-demand": Entry(logit_demand, SUITE_AND_NAMED),
    "orange-juice": Entry(orange_juice, SUITE_AND_NAMED),
}
