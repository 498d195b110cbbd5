"""Memory and pauses are bounded by design; benchmarks/pauses.py measures them."""

import numpy as np
import pytest

import continuarm as ca
from continuarm.core.model import Model
from continuarm.core.partitions.evidence import nodes
from continuarm.core.state import FREE_ROWS, LARGE, ROOM, ROWS_USED, copied, enlarged
from continuarm.errors import SettingsError
from continuarm.live.reader import Reader


def learn(policy: ca.Policy, n: int, *, steps: int = 0) -> list[float]:
    """Rounds against a best decision that is a stair in the context; what the root's node does."""
    rng, states = np.random.default_rng(0), []
    for x in rng.random((n, policy.context.dim)):
        decision = policy.ask(x)
        best = np.floor(x[0] * steps) / max(steps, 1)
        policy.tell(decision, -float(((decision.value - best) ** 2).sum()))
        states.append(float(policy.life.model.state.nodes[1, nodes.STATE]))
    return states


def test_a_large_array_is_moved_once() -> None:
    """Small ones are doubled; memory that nobody has written to is only reserved."""
    assert enlarged(np.ones((4, 10)), 3).tolist() == [[1.0] * 10] * 3 + [[0.0] * 10] * 5
    width = LARGE // 4
    rows = enlarged(np.ones((4, width)), 4)
    assert rows.shape == (ROOM // width, width)
    assert rows[:4].all()
    assert not rows[4].any()
    assert copied(rows, 2)[:4].any(axis=1).tolist() == [True, True, False, False]
    assert enlarged(np.ones((3, ROOM)), 0).shape == (6, ROOM)


def test_challengers_are_made_in_portions_where_they_are_large() -> None:
    policy = ca.SurfaceSampling(ca.Box.unit(30), ca.Box.unit(3), rng=0)
    states = learn(policy, 330)
    part, running = nodes.MADE_IN_PART, nodes.RUNNING
    assert 1 <= states.count(part) <= 4
    assert states[-1] == running
    first = states.index(part)
    assert set(states[first : first + states.count(part)]) == {part}
    assert policy.copy().snapshot() == policy.snapshot()


def test_a_policy_that_is_saved_between_portions_continues() -> None:
    policy = ca.SurfaceSampling(ca.Box.unit(30), ca.Box.unit(3), rng=0)
    while not learn(policy, 1)[0] == nodes.MADE_IN_PART:
        pass
    again = ca.Policy.from_snapshot(policy.snapshot())
    for one in (policy, again):
        learn(one, 20)
    assert again.snapshot() == policy.snapshot()


def test_bins_wait_for_challengers_where_there_is_no_room() -> None:
    policy = ca.SurfaceSampling(ca.Box.unit(1), ca.Box.unit(1), rng=0)
    model, most = policy.life.model, 9
    edges = np.array([[0.0], [1.0]])
    policy.life.model = Model(model.pcfg._replace(most=most), model.lcfg, edges, edges)
    for _ in range(20):
        learn(policy, 200, steps=6)
        counts = policy.life.model.state.counts
        assert counts[ROWS_USED] - 1 - counts[FREE_ROWS] <= most
    assert 2 <= len(policy.bins()) <= most
    assert 0.0 <= Reader(policy.export()).decide([0.5])[0] <= 1.0


@pytest.mark.parametrize(("dx", "dy"), [(1, 1000), (0, 2000), (900, 100)])
def test_more_coefficients_than_memory_allows_are_refused(dx: int, dy: int) -> None:
    with pytest.raises(SettingsError, match="at most 2000 coefficients, but got"):
        ca.SurfaceSampling(ca.Box.unit(dx), ca.Box.unit(dy))
