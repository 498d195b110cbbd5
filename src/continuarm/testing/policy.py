"""check_policy: what every policy promises, whatever it is made of."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from continuarm.box import Box
from continuarm.core.compiling import Array
from continuarm.errors import InputError, UnknownDecisionError
from continuarm.live import events
from continuarm.live.abilities import (
    DecidesAtOnce,
    LivePolicy,
    Recommends,
    RecommendsMany,
)
from continuarm.live.decision import Decision
from continuarm.live.named.by_name import maker_of
from continuarm.live.policy import Policy, load
from continuarm.testing.guards import check_frozen, check_near, check_segments
from continuarm.testing.playing import CONTEXT, DECISION, play, policy_box, refuses, tell

__all__ = ["check_policy"]

KNOWN = {"horizon": 2000, "curvature": 0.5, "curvature_max": 4.0}


def check_policy(
    make: Any,
    *,
    context: Box = CONTEXT,
    decision: Box = DECISION,
    rounds: int = 150,
    **settings: Any,
) -> None:
    """Check the contract of a policy.

    Parameters
    ----------
    make : a name, or what makes a policy for two boxes, as `simulate` takes it.
    context, decision : the boxes to try it in; both need names.
    rounds : decisions of each trial.
    settings : of the maker.

    >>> check_policy("static-kwsa", rounds=20, bins=4)
    """
    problem = _Nowhere(context, decision)

    def new(seed: int = 0) -> Any:
        known = {**KNOWN, "problem": problem, "rng": seed}
        return maker_of(make)(context, decision, known, settings)

    _check_decisions(new, rounds, context, decision)
    _check_seeds(new, rounds)
    _check_recommend(new, rounds, decision)
    if isinstance(new(), Policy):
        for check in (_check_refusals, _check_once, _check_copies, _check_life):
            check(new, rounds)
        for check in (check_frozen, check_segments, check_near):
            check(new, rounds)


class _Nowhere:
    """A world of which only the middle is known, for policies that ask for one."""

    def __init__(self, context: Box, decision: Box) -> None:
        self.context, self.decision = context, decision

    def best_many(self, contexts: Array) -> tuple[Array, Array]:
        """The middle is best everywhere."""
        decisions = np.tile(self.decision.centre, (len(contexts), 1))
        return decisions, np.zeros(len(contexts))


def _check_decisions(new: Callable[..., Any], rounds: int, context: Box, decision: Box) -> None:
    policy = new()
    assert isinstance(policy, LivePolicy), f"a policy must have ask and tell: {policy!r}"
    for value in play(policy, rounds, seed=1):
        assert value.shape == (decision.dim,), f"a decision has {decision.dim} numbers: {value}"
        assert decision.allows(value), f"a decision must lie in {decision}: {value}"
    if isinstance(policy, DecidesAtOnce):
        points = context.from_unit(np.random.default_rng(0).random((20, context.dim)))
        ones = [np.asarray(policy.ask(x).value) for x in points]
        same = np.array_equal(policy.decide_many(points), ones)
        assert same, "decide_many must decide as ask does"


def _check_seeds(new: Callable[..., Any], rounds: int) -> None:
    one, two = play(new(7), rounds, seed=2), play(new(7), rounds, seed=2)
    assert np.array_equal(one, two), "the same seed must give the same decisions"


def _check_recommend(new: Callable[..., Any], rounds: int, decision: Box) -> None:
    policy, twin = new(3), new(3)
    if not isinstance(policy, Recommends):
        return
    first = play(policy, rounds, seed=4)
    assert np.array_equal(first, play(twin, rounds, seed=4))
    points = policy_box(policy).from_unit(
        np.random.default_rng(5).random((10, policy_box(policy).dim))
    )
    best = np.array([policy.recommend(x) for x in points])
    assert all(map(decision.allows, best)), "recommend must stay in the box"
    if isinstance(policy, RecommendsMany):
        same = np.array_equal(best, policy.recommend_many(points))
        assert same, "recommend_many must answer as recommend does"
    after = play(policy, 20, seed=6), play(twin, 20, seed=6)
    assert np.array_equal(*after), "recommend must change nothing"


def _check_refusals(new: Callable[..., Policy], rounds: int) -> None:
    policy = new()
    play(policy, 20, seed=1)
    decision = policy.ask(policy.context.centre)
    before, nan = policy.snapshot(), float("nan")
    contexts: list[Any] = ["ab", {"nothing": 1.0}, [0.0] * (policy.context.dim + 1)]
    if policy.context.dim:
        contexts += [policy.context.high + 1.0, policy.context.low * nan]
    for context in contexts:
        for verb in (policy.ask, policy.recommend):
            refused = refuses(lambda v=verb, c=context: v(c), InputError)  # type: ignore[misc]
            assert refused, f"a bad context must be refused: {context!r}"
    for payoff in (nan, float("inf"), "1", None, True):
        refused = refuses(lambda p=payoff: policy.tell(decision, p), InputError)  # type: ignore[misc]
        assert refused, f"a bad payoff must be refused: {payoff!r}"
    assert policy.snapshot() == before, "what is refused must change nothing"


def _check_once(new: Callable[..., Policy], rounds: int) -> None:
    policy, other = new(), new()
    decision = policy.ask(policy.context.centre)
    for stranger in (other.ask(other.context.centre), 12345, "x"):
        refused = refuses(lambda s=stranger: policy.forget(s), UnknownDecisionError)  # type: ignore[misc]
        assert refused, f"a decision of another policy must be refused: {stranger!r}"
    again = Decision.from_json(decision.to_json())
    tell(policy, again, decision.value, 0.0)
    before = policy.snapshot()
    told = refuses(lambda: tell(policy, decision, decision.value, 0.0), UnknownDecisionError)
    assert told, "a decision must be told once"
    assert policy.snapshot() == before


def _check_copies(new: Callable[..., Policy], rounds: int) -> None:
    policy = new()
    play(policy, rounds, seed=1, keep=5)
    before, twin = policy.snapshot(), policy.copy()
    assert twin.snapshot() == before, "a copy must be in the same state"
    values = play(twin, 30, seed=2)
    assert policy.snapshot() == before, "a copy must go its own way"
    assert np.array_equal(play(policy, 30, seed=2), values)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy"
        policy.save(path)
        assert load(path).snapshot() == policy.snapshot(), "what is saved must load as it was"


def _check_life(new: Callable[..., Policy], rounds: int) -> None:
    """Whoever applies the same events to the same beginning has the same state."""
    policy = new()
    beginning, happened = policy.snapshot(), list[events.Event]()
    policy.listen(happened.append)
    play(policy, rounds, seed=3, keep=7)
    policy.forget_all()
    replayed = Policy.from_snapshot(beginning)
    for event in happened:
        replayed.apply(events.from_plain(events.to_plain(event)))
    assert replayed.snapshot() == policy.snapshot(), "a replay must end in the same state"
    check_numbers(policy)
    one, two = play(policy, 10, seed=4), play(replayed, 10, seed=4)
    assert np.array_equal(one, two), "a replay must decide the same next"


def check_numbers(policy: Policy) -> None:
    """No state ever holds a NaN."""
    for name, array in policy.life.model.state._asdict().items():
        assert not np.isnan(array).any(), f"{name} holds a NaN"
