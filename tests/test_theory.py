from typing import Any

import numpy as np
import pytest

import continuarm as ca
from continuarm.errors import SettingsError

THEORY = ca.theory


def test_rates_of_the_theorems() -> None:
    assert THEORY.horizon_exponent("static", 1, 2) == pytest.approx(2 / 3)
    assert THEORY.horizon_exponent("adaptive", 2, 50, 0.5) == pytest.approx(2.5 / 3)
    assert THEORY.horizon_exponent("uniform", 1, 2) == pytest.approx(4 / 5)
    assert THEORY.horizon_exponent("lower-bound", 2, 7) == pytest.approx(4 / 6)
    assert THEORY.horizon_exponent("robbins-monro", 1, 2) == pytest.approx(1 / 2)
    assert THEORY.dimension_exponent(1) == 1.0
    with pytest.raises(SettingsError, match="but got 'magic'"):
        THEORY.horizon_exponent("magic", 1, 2)  # type: ignore[arg-type]
    assert THEORY.bins("printed", 10**6, 1, 2) == ca.schedules.bins("printed", 10**6, 1, 2)


def test_the_consistent_choice_gives_the_rates() -> None:
    """Plug K into `K^(dx/2) √T + T K^-α`: the exponent between 10^9 and 10^18 is the theorem's."""
    for dx, holder in ((1, 1.0), (2, 1.0), (3, 2.0)):
        bounds = []
        for horizon in (10**9, 10**18):
            k = THEORY.bins("consistent", horizon, dx, 1, holder)
            bounds.append(k ** (dx / 2) * horizon**0.5 + horizon * k**-holder)
        exponent = np.log(bounds[1] / bounds[0]) / np.log(10**9)
        assert exponent == pytest.approx(
            THEORY.horizon_exponent("static", dx, 1, holder), abs=0.01
        )


@pytest.mark.parametrize(
    ("dy", "condition", "probe"),
    [(1, 1.0, "forward"), (2, 1.0, "alternate"), (2, 3.0, "forward"), (5, 2.0, "forward")],
)
def test_the_error_stays_under_the_bound_and_the_bound_says_something(
    dy: int, condition: float, probe: Any
) -> None:
    """E|ỹ_n - y*|² of 1,000 runs, with five standard errors, against the recursion of reading 12.

    Not vacuous: less than 1.8 times what is measured at equal curvatures, less than 15 times at
    different ones, and at 1,000 stencils below a twentieth of the box's diameter squared.
    """
    world = ca.problem("quadratic", dx=0, dy=dy, condition=condition, noise=0.1)
    assert world.curvature is not None
    assert world.curvature_max is not None
    step, runs = THEORY.step(world.curvature), 1000
    best = world.best_decision([])
    policy = ca.StaticKWSA(world.context, world.decision, bins=1, step=step, probe=probe)
    bound = THEORY.error_bound(
        1000,
        dy=dy,
        curvature=world.curvature,
        curvature_max=world.curvature_max,
        noise=world.noise,
        step=step,
        initial=float(((best - 0.5) ** 2).sum()),
    )
    for n in (100, 1000):
        horizon = (n - 1) * (dy + 1)  # the start is n = 1
        run = ca.simulate(policy, world, horizon=horizon, replications=runs, rng=1, checkpoints=1)
        errors = np.array([((p.recommend([]) - best) ** 2).sum() for p in run.policies])
        assert errors.mean() + 5 * errors.std(ddof=1) / np.sqrt(runs) < bound[n - 1]
        assert bound[n - 1] < (1.8 if condition == 1.0 else 15) * errors.mean()
    assert bound[-1] < 0.05 * dy


def test_the_bound_of_the_papers_example_is_below_one_after_eleven_thousand_stencils() -> None:
    world = ca.problem("two-communities")
    assert world.curvature is not None
    assert world.curvature_max is not None
    bound = THEORY.error_bound(
        12_000,
        dy=2,
        curvature=world.curvature,
        curvature_max=world.curvature_max,
        noise=0.1,
        step=THEORY.step(world.curvature),
    )
    assert 10_500 < int(np.argmax(bound < 1)) < 11_500


def test_the_regret_stays_under_its_bound() -> None:
    world = ca.problem("quadratic", dx=0, dy=2, condition=2.0)
    assert world.curvature is not None
    assert world.curvature_max is not None
    step, n = THEORY.step(world.curvature), 3000
    errors = THEORY.error_bound(
        n, dy=2, curvature=world.curvature, curvature_max=world.curvature_max, noise=0.1, step=step
    )
    bound = THEORY.regret_bound(errors, dy=2, curvature_max=world.curvature_max)[-1]
    policy = ca.StaticKWSA(world.context, world.decision, bins=1, step=step)
    run = ca.simulate(policy, world, horizon=3 * n, replications=50, rng=0, checkpoints=1)
    assert run.mean[-1] + 5 * run.standard_error[-1] < bound < 60 * run.mean[-1]


def test_the_bound_refuses_what_it_cannot_say() -> None:
    settings = {"dy": 2, "curvature": 1.0, "curvature_max": 2.0, "noise": 0.1, "step": 0.4}
    for bad in ({"step": 0.6}, {"curvature": -1.0}, {"curvature_max": 0.5}, {"width": 0.7}):
        with pytest.raises(SettingsError, match="must hold, but got"):
            THEORY.error_bound(10, **(settings | bad))  # type: ignore[arg-type]
