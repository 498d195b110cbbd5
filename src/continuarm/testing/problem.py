"""check_problem: a simulated world does what it declares."""

import numpy as np

from continuarm.core.compiling import Array
from continuarm.errors import InputError
from continuarm.problems import Problem
from continuarm.sets import is_guarded

__all__ = ["check_problem"]


def check_problem(world: Problem, *, tolerance: float = 1e-9) -> None:
    """Check the contract of a problem.

    Parameters
    ----------
    world : the problem.
    tolerance : by how much a random decision may beat the best one.

    >>> from continuarm.problems import problem
    >>> check_problem(problem("two-communities"))
    """
    check_contexts(world)
    check_best_decision(world, tolerance)
    check_payoffs(world)
    check_refusals(world)
    check_gradient(world)
    check_optimum_is_flat(world)
    check_curvature(world)


def points(world: Problem, n: int) -> tuple[Array, Array]:
    """Contexts as the problem draws them, and random decisions."""
    rng = np.random.default_rng(11)
    decisions = world.decision.from_unit(rng.random((n, world.decision.dim)))
    return world.draw_contexts(rng, n), decisions


def check_contexts(world: Problem) -> None:
    """Contexts are seeded and lie inside their box."""
    one = world.draw_contexts(np.random.default_rng(1), 100)
    two = world.draw_contexts(np.random.default_rng(1), 100)
    np.testing.assert_array_equal(one, two)
    world.context.points(one)


def check_best_decision(world: Problem, tolerance: float = 1e-9) -> None:
    """The best decision is allowed, and no random one, near or far, that is beats it."""
    contexts, _ = points(world, 30)
    best, payoffs = world.best_many(contexts)
    assert all(map(world.decision.allows, world.decision.points(best)))
    rng = np.random.default_rng(2)
    for x, y, payoff in zip(contexts, best, payoffs, strict=True):
        steps = [scale * rng.normal(size=(15, y.size)) for scale in (1e-4, 1e-2, 0.1)]
        near = y + world.decision.span * np.concatenate(steps)
        far = world.decision.from_unit(rng.random((20, y.size)))
        tried = np.array([world.decision.nearest(one) for one in np.concatenate([near, far])])
        found = world.mean_many(np.tile(x, (len(tried), 1)), tried)
        assert found.max() <= payoff + tolerance, (x, tried[found.argmax()])
        assert payoff == world.mean_payoff(x, y) == world.best_payoff(x)


def check_payoffs(world: Problem, draws: int = 1_000) -> None:
    """Payoffs average to the mean within six standard errors: fails by chance once in 10^9."""
    contexts, decisions = points(world, 3)
    rng = np.random.default_rng(3)
    for x, y in zip(contexts, decisions, strict=True):
        payoffs = np.array([world.payoff(x, y, rng) for _ in range(draws)])
        error, mean = payoffs.std() / np.sqrt(draws), world.mean_payoff(x, y)
        assert abs(payoffs.mean() - mean) <= 6 * error + 1e-12 * abs(mean), (x, y)
    one, two = (world.payoff(x, y, np.random.default_rng(4)) for _ in range(2))
    assert one == two, "payoffs must be seeded"


def check_refusals(world: Problem) -> None:
    """A decision or a context outside its box is refused."""
    (x,), (y,) = points(world, 1)
    for bad in (world.decision.high + 1, world.decision.low - 1, y * np.nan):
        assert refused(world, x, bad), bad
    for bad in (world.context.high + 1, x * np.nan) if x.size else (np.zeros(1),):
        assert refused(world, bad, y), bad


def refused(world: Problem, x: Array, y: Array) -> bool:
    try:
        world.mean_payoff(x, y)
    except InputError:
        return True
    return False


def check_gradient(world: Problem, absolute: float = 1e-6, relative: float = 1e-6) -> None:
    """A declared gradient is that of the mean payoff, by differences."""
    if not world.has_gradient:
        return
    contexts, decisions = points(world, 10)
    inner = world.decision.low + 0.01 * world.decision.span
    outer = world.decision.high - 0.01 * world.decision.span
    for x, y in zip(contexts, np.clip(decisions, inner, outer), strict=True):
        gradient = world.gradient(x, y)
        for i, h in enumerate(1e-5 * world.decision.span):
            step = h * np.eye(y.size)[i]
            rise = world.mean_payoff(x, y + step) - world.mean_payoff(x, y - step)
            assert abs(rise / (2 * h) - gradient[i]) <= absolute + relative * abs(gradient[i])


def check_optimum_is_flat(world: Problem) -> None:
    """A declared gradient, per unit of the cube, is 0 up to 1e-9 M5 at the best decision.

    At an edge of the box it may point outwards; guards are other edges, which are not looked at.
    """
    if not world.has_gradient or is_guarded(world.decision):
        return
    contexts, _ = points(world, 50)
    best, _ = world.best_many(contexts)
    tolerance = 1e-9 * max(world.curvature_max or 1.0, 1.0)
    for x, y in zip(contexts, best, strict=True):
        slope = world.gradient(x, y) * world.decision.span
        assert (slope[y < world.decision.high] < tolerance).all(), (x, y)
        assert (slope[y > world.decision.low] > -tolerance).all(), (x, y)


def check_curvature(world: Problem) -> None:
    """Declared curvatures are positive, and the smallest is not the larger one."""
    for bound in (world.curvature, world.curvature_max):
        assert bound is None or 0 < bound < np.inf
    if world.curvature is not None and world.curvature_max is not None:
        assert world.curvature <= world.curvature_max
