"""What every policy promises of what somebody froze, and of how far decisions may move."""

from collections.abc import Callable

import numpy as np

from continuarm.core.compiling import Array
from continuarm.errors import InputError, SettingsError
from continuarm.live import events, state
from continuarm.live.near_reference import LifeNearReference, life_of
from continuarm.live.policy import Policy
from continuarm.testing.playing import play, refuses
from continuarm.testing.tables import check_table

__all__ = ["check_frozen", "check_near", "check_segments"]

MOVE = 0.1  # of each side


def check_frozen(new: Callable[..., Policy], rounds: int) -> None:
    """A frozen bin answers with what it knew, learns nothing, and is saved and replayed so."""
    policy = new()
    play(policy, rounds, seed=1, keep=3)
    before, bin_ = policy.snapshot(), policy.bins()[0]
    if not policy.life.model.stands_alone:
        refused = refuses(lambda: policy.freeze(bin_), InputError)
        assert refused, "what cannot be frozen must be refused"
        assert policy.snapshot() == before, "what is refused must change nothing"
        return
    happened = list[events.Event]()
    policy.listen(happened.append)
    policy.freeze(bin_)
    play(policy, rounds, seed=2, keep=3)
    [after] = [one for one in policy.bins() if one.id == bin_.id]
    assert after.frozen, "a bin must stay frozen"
    assert np.array_equal(after.best, bin_.best), "a frozen bin must answer as before"
    assert after.progress == bin_.progress, "a frozen bin must learn nothing"
    for context in (bin_.low, 0.5 * (bin_.low + bin_.high)):
        decision, best = policy.ask(context), policy.recommend(context)
        assert decision.role == "best", "a frozen bin must not explore"
        assert np.array_equal(decision.value, best), "a frozen bin must answer with its best"
    check_table(policy)
    saved = Policy.from_snapshot(policy.snapshot())
    assert saved.snapshot() == policy.snapshot(), "a frozen bin must be saved"
    policy.unfreeze(bin_.id)
    replayed = Policy.from_snapshot(before)
    for event in happened:
        replayed.apply(events.from_plain(events.to_plain(event)))
    assert replayed.snapshot() == policy.snapshot(), "a replay must freeze the same bins"


def check_segments(new: Callable[..., Policy], rounds: int) -> None:
    """A frozen segment answers as of then, learns nothing, and is saved and replayed so."""
    policy = new()
    if policy.context.dim == 0:
        return
    name, low, span = policy.context.names[0], policy.context.low[0], policy.context.span[0]
    where = {name: (float(low), float(low + 0.4 * span))}
    play(policy, rounds, seed=1, keep=3)
    before, happened = policy.snapshot(), list[events.Event]()
    if not policy.life.model.stands_alone:
        refused = refuses(lambda: policy.freeze(where), InputError)
        assert refused, "what cannot be frozen must be refused"
        assert policy.snapshot() == before, "what is refused must change nothing"
        return
    contexts = policy.context.from_unit(np.random.default_rng(0).random((20, policy.context.dim)))
    inside = contexts[:, 0] <= where[name][1]
    then = policy.recommend_many(contexts)
    policy.listen(happened.append)
    policy.freeze(where)
    play(policy, rounds, seed=2, keep=3)
    after = policy.recommend_many(contexts)
    assert np.array_equal(after[inside], then[inside]), "a frozen segment must answer as before"
    for context, best in zip(contexts[inside], then[inside], strict=True):
        decision = policy.ask(context)
        assert decision.role == "best", "a frozen segment must not explore"
        assert np.array_equal(decision.value, best), "a frozen segment must answer as before"
        state = policy.life.model.copy()
        slope = np.zeros(policy.decision.dim) if policy.uses_gradient else None
        policy.tell(decision, 0.0, gradient=slope)
        learned = policy.life.model.recommend(contexts, policy.life.limits)
        known = state.recommend(contexts, policy.life.limits)
        assert np.array_equal(learned, known), "a frozen segment must learn nothing"
    saved = Policy.from_snapshot(policy.snapshot())
    assert saved.snapshot() == policy.snapshot(), "a frozen segment must be saved"
    check_table(policy)
    policy.unfreeze(where)
    replayed = Policy.from_snapshot(before)
    for event in happened:
        replayed.apply(events.from_plain(events.to_plain(event)))
    assert replayed.snapshot() == policy.snapshot(), "a replay must freeze the same segments"


def check_near(new: Callable[..., Policy], rounds: int) -> None:
    """Decisions stay near the reference, which is saved and replayed; or it is refused."""
    beginning = new().life.beginning
    begun = beginning._replace(max_move=MOVE * beginning.decision.span)
    model = new().life.model
    if not model.stands_alone or model.counts_asking:
        refused = refuses(lambda: life_of(begun), SettingsError)
        assert refused, "a `max_move` that cannot be honoured must be refused"
        return
    policy = Policy.from_snapshot(state.to_bytes(life_of(begun)))
    before, happened = policy.snapshot(), list[events.Event]()
    policy.listen(happened.append)
    play(policy, rounds, seed=1)
    _check_moves(policy, policy.life.incumbent.at)
    policy.renew_reference()
    kept = Policy.from_snapshot(policy.snapshot()).life
    assert isinstance(kept, LifeNearReference), "a `max_move` must be saved"
    play(policy, rounds, seed=2)
    _check_moves(policy, kept.reference_at)
    check_table(policy)
    replayed = Policy.from_snapshot(before)
    for event in happened:
        replayed.apply(events.from_plain(events.to_plain(event)))
    assert replayed.snapshot() == policy.snapshot(), "a replay must renew the same reference"


def _check_moves(policy: Policy, reference: Callable[[Array], Array]) -> None:
    units = np.random.default_rng(0).random((20, policy.context.dim))
    for context in policy.context.from_unit(units):
        for value in (policy.recommend(context), policy.ask(context).value):
            moved = abs(value - reference(context)) / policy.decision.span
            assert (moved <= MOVE + 1e-9).all(), f"a decision must be near {reference(context)}"
