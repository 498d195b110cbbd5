"""Seeded statements about regret: paired by seed, thresholds derived from standard errors."""

import numpy as np
import pytest

import continuarm as ca

WORLD = ca.problem("two-communities")
SEEDS = 16


def corrected_adaptive() -> ca.Policy:
    """The settings with the corrections of docs/reading.md."""
    return ca.AdaptiveKWSA(
        WORLD.context,
        WORLD.decision,
        depth=6,
        split_after="lipschitz",
        inherit="iterate-and-count",
        probe="alternate",
        width=0.3,
        step=1.0,
    )


def corrected_static(horizon: int) -> ca.Policy:
    return ca.StaticKWSA(
        WORLD.context,
        WORLD.decision,
        horizon=horizon,
        bins="lipschitz",
        probe="alternate",
        width=0.3,
        step=1.0,
    )


def final(policy: object, horizon: int) -> np.ndarray:
    run = ca.simulate(policy, WORLD, horizon=horizon, replications=SEEDS, rng=0, checkpoints=1)
    return run.regret[:, -1]


def slope(horizons: list[int], regrets: list[np.ndarray]) -> tuple[float, float]:
    """Least squares of log mean regret on log T, and its standard error by the delta method."""
    x = np.log(horizons)
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    means = np.array([r.mean() for r in regrets])
    errors = np.array([r.std(ddof=1) / np.sqrt(len(r)) for r in regrets]) / means
    return float(weights @ np.log(means)), float(np.sqrt((weights**2) @ (errors**2)))


@pytest.mark.parametrize("kind", ["adaptive", "static"])
def test_the_slope_of_the_papers_problem_with_the_corrections(kind: str) -> None:
    """Between the lower bound 3/5 less a transient and the paper's 2/3: five errors inside.

    y*(x) is Lipschitz in this problem, so T^(3/5) is what is to be had; the first half-decades
    still pay for the way from the centre, so 0.5 is allowed below and 0.7 above.
    """
    horizons = [10**4, 10**5, 10**6]
    regrets = [
        final(corrected_adaptive() if kind == "adaptive" else corrected_static(t), t)
        for t in horizons
    ]
    found, error = slope(horizons, regrets)
    assert error < 0.02
    assert 0.5 < found - 5 * error
    assert found + 5 * error < 0.7


def test_adaptive_is_below_static() -> None:
    """With the corrections, paired by seed, by more than five standard errors."""
    gain = final(corrected_static(10**5), 10**5) - final(corrected_adaptive(), 10**5)
    assert gain.mean() > 5 * gain.std(ddof=1) / np.sqrt(SEEDS)


def test_both_are_far_ahead_of_the_uniform_algorithm() -> None:
    """Settings as printed, T = 10^5: less than a third, five errors inside."""
    uniform = final("uniform-ucb", 10**5)
    for name in ("static-kwsa", "adaptive-kwsa"):
        gap = uniform / 3 - final(name, 10**5)
        assert gap.mean() > 5 * gap.std(ddof=1) / np.sqrt(SEEDS)


def test_the_corrections_help() -> None:
    """Each one against the same policy without it, paired by seed, five errors."""
    boxes = WORLD.context, WORLD.decision
    forward = final(ca.StaticKWSA(*boxes, bins=16, step=1.0), 10**5)
    for probe in ("alternate", "central"):
        gain = forward - final(ca.StaticKWSA(*boxes, bins=16, step=1.0, probe=probe), 10**5)
        assert gain.mean() > 5 * gain.std(ddof=1) / np.sqrt(SEEDS)
    settings = {"depth": 5, "split_after": "lipschitz", "step": 1.0, "probe": "alternate"}
    restarted = final(ca.AdaptiveKWSA(*boxes, **settings), 10**5)  # type: ignore[arg-type]
    kept = final(
        ca.AdaptiveKWSA(*boxes, **settings, inherit="iterate-and-count"),  # type: ignore[arg-type]
        10**5,
    )
    gain = restarted - kept
    assert gain.mean() > 5 * gain.std(ddof=1) / np.sqrt(SEEDS)


def test_gradients_beat_differences() -> None:
    """Robbins–Monro reaches a better recommendation than Kiefer–Wolfowitz, by five errors."""
    world = ca.problem("quadratic", dx=1, dy=3, condition=3.0)
    runs = [
        ca.simulate(name, world, horizon=10**5, replications=SEEDS, rng=0, checkpoints=1)
        for name in ("static-kwsa", "robbins-monro")
    ]
    gain = runs[0].recommend_regret[:, -1] - runs[1].recommend_regret[:, -1]
    assert gain.mean() > 5 * gain.std(ddof=1) / np.sqrt(SEEDS)


def test_averaging_does_not_lose_the_optimum() -> None:
    """What it recommends goes on improving from 10^5 to 10^6 decisions, by five errors."""
    policy = ca.StaticKWSA(WORLD.context, WORLD.decision, bins=8, step=1.0, average=True)
    run = ca.simulate(policy, WORLD, horizon=10**6, replications=SEEDS, rng=0, checkpoints=[10**5])
    gain = run.recommend_regret[:, 0] - run.recommend_regret[:, 1]
    assert gain.mean() > 5 * gain.std(ddof=1) / np.sqrt(SEEDS)
