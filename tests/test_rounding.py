"""States that differ in their last digits: the first that was kept is the truth."""

import json
import logging
import math
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import continuarm as ca
from continuarm.core.state import HEAD
from continuarm.errors import StoreError
from continuarm.ledger import SharedPolicy, share, snapshots
from continuarm.ledger.difference import NONE, between_numbers, between_states
from continuarm.ledger.replaying import replay
from continuarm.live.life import Life
from continuarm.store import Store, open_store

AGE = ca.Box([18.0], [90.0], names=["age"])
PRICE = ca.Box([1.0], [9.0], names=["price"])
EVERY = 20


def new() -> ca.Policy:
    return ca.SurfaceSampling(AGE, PRICE, rng=1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(tmp_path / "shop.db")) as opened:
        yield opened


def visit(shared: SharedPolicy, times: int) -> None:
    for k in range(times):
        decision = shared.ask([18.0 + 7.0 * k % 72.0])
        shared.tell(decision, 3.0 - (decision.value[0] - 0.05 * decision.context[0]) ** 2)
    shared.policy()  # it has folded all that, and kept its snapshots


def nudge(life: Life, relative: float) -> None:
    """As if it were rounded otherwise."""
    rows = life.model.state.rows
    column = HEAD + int(np.argmax(np.abs(rows[1, HEAD:] - np.round(rows[1, HEAD:]))))
    rows[1, column] *= 1.0 + relative


def content(shared: SharedPolicy) -> bytes:
    return snapshots.snapshot_of(shared.policy().life, 0).state


def test_a_replica_that_is_rounded_otherwise_goes_on_from_the_snapshot_that_was_kept(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = (share(new(), store, "prices", every=EVERY) for _ in range(2))
    visit(one, 12)
    other.policy()
    nudge(other._replica.life, 2.0**-50)
    visit(one, 5)  # past the next snapshot, and some more
    assert content(one) != content(other)
    with caplog.at_level(logging.WARNING, "continuarm"):
        visit(one, 8)
        other.policy()
    assert (other._replica.rounded, one._replica.rounded) == (1, 0)
    [line] = [record.getMessage() for record in caplog.records]
    assert "'prices' at 40 differs by rounding" in line
    assert " at rows[1, " in line
    assert content(one) == content(other)
    other.ask([30.0])
    assert replay(store, "prices").rounding == NONE


def test_a_larger_difference_is_said_and_nothing_is_kept_by_who_differs(store: Store) -> None:
    one, other = (share(new(), store, "prices", every=EVERY) for _ in range(2))
    visit(one, 12)
    other.policy()
    nudge(other._replica.life, 1e-3)
    visit(one, 8)
    other.recommend([20.0])
    with pytest.raises(
        StoreError, match=r"differs from the snapshot .* by 0.[0-9]+ at rows\[1, .*"
    ):
        other.ask([30.0])
    visit(one, 20)
    kept = [snapshot.position for snapshot in store.snapshots("prices")]
    other.policy()
    assert [snapshot.position for snapshot in store.snapshots("prices")] == kept
    again = share(new(), store, "prices", every=EVERY)  # as after a restart
    again.ask([30.0])


def test_where_asking_changes_the_state_nothing_may_be_rounded(store: Store) -> None:
    def policy() -> ca.Policy:
        return ca.StaticKWSA(AGE, PRICE, bins=2, step=1.0, rng=1)

    one, other = (share(policy(), store, "prices", every=EVERY) for _ in range(2))
    visit(one, 12)
    other.policy()
    nudge(other._replica.life, 2.0**-50)
    visit(one, 8)
    with pytest.raises(StoreError, match=r"decision [0-9]+ must be .* in this state"):
        other.recommend([20.0])


def test_a_replay_says_the_largest_rounding_and_where_and_goes_on(store: Store) -> None:
    one = share(new(), store, "prices", every=EVERY)
    visit(one, 15)
    nudge(one._replica.life, 2.0**-45)
    visit(one, 20)
    found = replay(store, "prices")
    assert (found.difference, found.decisions) == (None, 35)
    assert 0.0 < found.rounding.relative < 1e-6
    assert found.rounding.where.startswith("position ")
    visit(one, 5)
    nudge(one._replica.life, 1e-4)
    visit(one, 10)
    difference = replay(store, "prices").difference
    assert difference is not None
    assert " was " in difference


CHANGES: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "a count": (lambda life, rows: life.asked_of.__setitem__(0, 99), "asked_per_bin[0]"),
    "a whole number of a row": (lambda life, rows: rows.__setitem__((1, 2), 99.0), "rows[1, 2]"),
    "no number": (lambda life, rows: rows.__setitem__((1, 9), math.nan), "rows[1, 9]"),
    "a flag": (lambda life, rows: setattr(life, "paused", True), "header.paused"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_is_never_rounded_differs_by_more(what: str, store: Store) -> None:
    shared = share(new(), store, "prices")
    visit(shared, 5)
    change, where = CHANGES[what]
    life = shared.policy().life
    change(life, life.model.state.rows)
    found = between_states(content(shared), snapshots.snapshot_of(life, 0).state)
    assert (found.relative, found.where) == (math.inf, where)
    life.model.state.rows[:] = 0.0  # so that no test finds a number that is none


def test_what_is_left_of_a_sum_that_cancels_out_is_no_difference() -> None:
    one, other = np.array([[1.0, 0.5, 3e-17]]), np.array([[1.0, 0.5, -2e-17]])
    assert between_numbers(one, other, "rows").is_rounding
    one[0, 1] += 1e-9
    assert str(between_numbers(one, other, "rows")) == "2e-09 at rows[0, 1]"
    one[0, 1] += 1e-5
    assert not between_numbers(one, other, "rows").is_rounding
    assert between_numbers(np.array([2.0**60]), np.array([2.0**60 + 2.0**9]), "x").is_rounding


def damage(where: Path, statement: str, *given: Any) -> None:
    with closing(sqlite3.connect(where)) as connection:
        assert connection.execute(statement, given).rowcount >= 1
        connection.commit()


WITHOUT_COPY = "UPDATE events SET checksum = NULL, body = json_remove(body, '$.state')"
FLIP = (
    "UPDATE snapshots SET state = CAST(substr(state, 1, 99) || 'x' || substr(state, 101) AS BLOB)"
)


def test_a_broken_snapshot_falls_back_to_the_one_before_and_to_the_ledger(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shared = share(new(), store, "prices", every=EVERY)
    visit(shared, 25)
    kept = [snapshot.position for snapshot in store.snapshots("prices")]
    assert kept == [1, 20, 40]
    for positions in ([40], [20, 40]):
        marks = ", ".join(str(position) for position in positions)
        damage(tmp_path / "shop.db", f"{FLIP} WHERE position IN ({marks}) AND state NOT LIKE 'x'")
        caplog.clear()
        again = share(new(), store, "prices", every=EVERY)
        assert content(again) == content(shared)
        assert f"'prices' at {positions[-1]} is not" in caplog.text
        again.ask([30.0])
    damage(tmp_path / "shop.db", FLIP)
    caplog.clear()
    assert content(share(new(), store, "prices", every=EVERY)) == content(shared)
    assert "'prices' at 1 is broken: the ledger's copy is taken" in caplog.text
    damage(tmp_path / "shop.db", WITHOUT_COPY)
    with pytest.raises(StoreError, match="at 1, 20, 40, is damaged: restore a backup"):
        share(new(), store, "prices")


def test_a_young_experiment_survives_its_only_snapshot(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shared = share(new(), store, "prices")
    visit(shared, 5)
    for statement in (FLIP, "UPDATE snapshots SET digest = 'x'", "DELETE FROM snapshots"):
        damage(tmp_path / "shop.db", statement)
        caplog.clear()
        again = share(new(), store, "prices")
        assert content(again) == content(shared)
        assert "'prices' at 1 is broken: the ledger's copy is taken" in caplog.text
        again.ask([30.0])
    assert replay(store, "prices").difference is None
    damage(tmp_path / "shop.db", WITHOUT_COPY)
    with pytest.raises(StoreError, match="of 'prices' it has none: restore a backup"):
        share(new(), store, "prices")
    assert "beginning is gone: restore a backup" in str(replay(store, "prices").difference)


BROKEN = {
    "no JSON": "nonsense",
    "no event": json.dumps({"payoff": "much"}),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_record_is_said_in_one_line(what: str, store: Store, tmp_path: Path) -> None:
    shared = share(new(), store, "prices")
    visit(shared, 5)
    late = share(new(), store, "prices")
    visit(shared, 1)
    head = store.experiment("prices").head
    before = store.read("prices", head - 1)[0].body
    repair = "UPDATE events SET body = ?, checksum = NULL WHERE position = ?"
    damage(tmp_path / "shop.db", "UPDATE events SET checksum = NULL WHERE ? = ?", 0, 0)
    damage(tmp_path / "shop.db", repair, BROKEN[what], head)
    for _ in range(2):
        with pytest.raises(StoreError, match=f"cannot be after position {head - 1}: ") as caught:
            late.ask([30.0])
        assert "\n" not in str(caught.value)
    damage(tmp_path / "shop.db", repair, before, head)
    late._replica._again = 0.0  # two seconds later
    late.ask([30.0])
