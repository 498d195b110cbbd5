"""check_frozen: what every policy promises of the bins that somebody froze."""

from collections.abc import Callable

import numpy as np

from continuarm.errors import InputError
from continuarm.live import events
from continuarm.live.policy import Policy
from continuarm.testing.playing import play, refuses

__all__ = ["check_frozen"]


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
    saved = Policy.from_snapshot(policy.snapshot())
    assert saved.snapshot() == policy.snapshot(), "a frozen bin must be saved"
    policy.unfreeze(bin_.id)
    replayed = Policy.from_snapshot(before)
    for event in happened:
        replayed.apply(events.from_plain(events.to_plain(event)))
    assert replayed.snapshot() == policy.snapshot(), "a replay must freeze the same bins"
