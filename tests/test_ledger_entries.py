"""Entries of a ledger: what is written is read back, whole or as much as a state keeps."""

import json

import numpy as np
import pytest

import continuarm as ca
from continuarm.errors import StoreError
from continuarm.ledger.entries import entry_of, event_of, lean_event_of
from continuarm.live.events import Asked, Event, Told
from continuarm.store.records import Entry, Record

CONTEXT, DECISION = ca.Box([18, 0], [90, 250_000]), ca.Box([1, 2], [9, 7])
KEPT = ("id", "context", "value", "at", "role", "bin", "start")


def asked() -> list[Asked]:
    """Decisions of a policy that somebody listens to."""
    heard = list[Event]()
    policy = ca.SurfaceSampling(CONTEXT, DECISION, share=0.3, rng=0)
    policy.listen(heard.append)
    rng = np.random.default_rng(1)
    for point in CONTEXT.low + rng.random((50, 2)) * (CONTEXT.high - CONTEXT.low):
        policy.tell(policy.ask(point), float(rng.normal()))
    return [event for event in heard if isinstance(event, Asked)]


def recorded(entry: Entry) -> Record:
    return Record(7, 12.5, *entry)


def test_what_a_state_keeps_of_a_decision_is_read_to_the_last_bit() -> None:
    for event in asked():
        record = recorded(entry_of(event, "order-17", folded=3))
        whole, lean = event_of(record, 2.0), lean_event_of(record, 2.0)
        assert isinstance(whole, Asked)
        assert isinstance(lean, Asked)
        assert whole.view is not None
        assert lean.view is None
        for name in KEPT:
            expected, found = (np.asarray(getattr(one, name)) for one in (whole, lean))
            assert (found.dtype, found.tobytes()) == (expected.dtype, expected.tobytes()), name


def test_other_events_and_infinite_numbers_are_read_as_ever() -> None:
    told = recorded(entry_of(Told(5, 1.5)))
    assert lean_event_of(told, 0.0) == event_of(told, 0.0) == Told(5, 1.5)
    limits = np.array([[-np.inf, 0.0], [np.inf, 1.0]])
    record = recorded(entry_of(asked()[0]._replace(limits=limits)))
    found = event_of(record, 0.0)
    assert isinstance(found, Asked)
    assert np.array_equal(np.asarray(found.limits), limits)
    lean = lean_event_of(record, 0.0)
    assert isinstance(lean, Asked)
    assert lean.value.tobytes() == found.value.tobytes()


@pytest.mark.parametrize("damage", ["value", "bin", "role"])
def test_a_damaged_decision_is_refused(damage: str) -> None:
    entry = entry_of(asked()[0])
    body = json.loads(entry.body)
    del body[damage]
    record = recorded(entry._replace(body=json.dumps(body)))
    with pytest.raises(StoreError, match="record 7"):
        lean_event_of(record, 0.0)
