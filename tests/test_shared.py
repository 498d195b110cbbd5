"""Shared policies: many processes, one ledger, the same bits, nothing lost."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest

import continuarm as ca
from continuarm.errors import (
    AlreadyToldError,
    ExperimentConflictError,
    ExpiredDecisionError,
    InputError,
    SettingsError,
    StoreError,
    UnknownDecisionError,
    UnknownExperimentError,
)
from continuarm.ledger import SharedPolicy, replica, share, snapshots, version
from continuarm.ledger.entries import entry_of
from continuarm.ledger.fold import fold
from continuarm.ledger.refold import Refold
from continuarm.ledger.replaying import replay
from continuarm.live import events
from continuarm.live.life import Life
from continuarm.live.segments import Segment
from continuarm.store import Entry, Record, Store, open_store
from continuarm.store.records import Appended

AGE = ca.Box([18.0], [90.0], names=["age"])
PRICE = ca.Box([1.0], [9.0], names=["price"])


def new(**options: object) -> ca.Policy:
    return ca.SurfaceSampling(AGE, PRICE, **options)  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(tmp_path / "shop.db")) as opened:
        yield opened


@pytest.fixture(params=["sqlite", "postgresql", "memory"])
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    where = ":memory:" if request.param == "memory" else str(tmp_path / "shop.db")
    if request.param == "postgresql":
        where = request.getfixturevalue("server").fresh(f"shared-{request.node.name[-40:]}")
    with closing(open_store(where)) as opened:
        yield opened


def payoff(decision: ca.Decision) -> float:
    return float(3.0 - (decision.value[0] - 0.05 * decision.context[0]) ** 2)


def folded(store: Store, name: str) -> bytes:
    """The state that the whole ledger folds to, from its beginning."""
    found = replica.Replica(store, name, every=10**9)
    first = min(store.snapshots(name), key=lambda snapshot: snapshot.position)
    found.life, found.position = snapshots.life_of(first), first.position
    found.catch_up()
    return found.snapshot().state


def state_of(shared: SharedPolicy) -> bytes:
    return snapshots.snapshot_of(shared.policy().life, 0).state


def test_two_who_share_a_policy_hold_the_same_bits(any_store: Store) -> None:
    store = any_store
    one, two = share(new(rng=1), store, "prices", every=50), share(new(rng=2), store, "prices")
    rng, waiting = np.random.default_rng(0), []
    for k in range(120):
        asker, teller = (one, two) if rng.random() < 0.5 else (two, one)
        waiting.append(asker.ask([rng.uniform(18.0, 90.0)]))
        if len(waiting) > 5:
            decision = waiting.pop(int(rng.integers(5)))
            if k % 10:
                teller.tell(decision, payoff(decision))
            else:
                teller.forget(decision.id)
    states = {state_of(shared) for shared in (one, two)}
    assert states == {folded(store, "prices")}
    late = share(new(), store, "prices")
    assert state_of(late) in states, "from a snapshot and a tail"
    assert len({snapshot.position for snapshot in store.snapshots("prices")}) > 3
    stats = late.policy().stats()
    assert (stats.asked, stats.told + stats.forgotten) == (120, 115)
    assert one.recommend([37.0]) == two.recommend([37.0])
    assert one.recommend_many([[37.0]])[0] == one.policy().recommend([37.0])


def test_the_more_decisions_are_open_the_fewer_snapshots_are_kept(any_store: Store) -> None:
    one = share(new(), any_store, "prices", every=10)
    two = share(new(), any_store, "prices", every=10)
    waiting = [one.ask([37.0]) for _ in range(45)]  # after 1, where it began: 2 to 46
    for decision in waiting[:35]:  # 47 to 81
        two.tell(decision, payoff(decision))
    for shared in (one, two):
        shared.policy()  # which catches up
    # Open are 9 at 10; 19 at 20: each second counts; 29, 39 at 30, 40: each fourth; 41 at 50: each
    # eighth; 31, 21 at 60, 70: each fourth; 11 at 80: each second.
    kept = [snapshot.position for snapshot in any_store.snapshots("prices")]
    assert kept == [1, 10, 20, 40, 80]
    assert state_of(share(new(), any_store, "prices")) == state_of(one) == state_of(two)


def test_threads_append_together_and_each_gets_its_own(any_store: Store) -> None:
    store = any_store
    shared = share(new(rng=1), store, "prices")

    def visit(k: int) -> tuple[float, int]:
        decision = shared.ask({"age": 20.0 + k}, key=f"visit {k}")
        shared.tell(decision, payoff(decision))
        return float(decision.context[0]), decision.id

    with ThreadPoolExecutor(8) as pool:
        visits = list(pool.map(visit, range(40)))
    assert [context for context, _ in visits] == [20.0 + k for k in range(40)]
    assert len({id_ for _, id_ in visits}) == 40
    assert shared.policy().stats().told == 40
    assert state_of(shared) == folded(store, "prices")


def test_a_second_try_with_a_key_gets_the_same_decision(store: Store) -> None:
    one, two = share(new(), store, "prices"), share(new(), store, "prices")
    first = one.ask([37.0], key="order-17")
    again = two.ask([37.0], key="order-17")
    assert (again.id, again.value.tolist()) == (first.id, first.value.tolist())
    assert one.policy().stats().asked == 1
    with pytest.raises(InputError, match="a key is for one decision"):
        two.ask([38.0], key="order-17")
    two.tell(again, 1.5)
    one.tell(first, 1.5)  # the same again
    with pytest.raises(AlreadyToldError, match="was told before"):
        one.tell(first, 1.6)
    with pytest.raises(AlreadyToldError, match="was told before"):
        one.forget(first)
    for unknown in (5, ca.Decision(7, first.context, first.value, ("price",))):
        with pytest.raises(UnknownDecisionError, match="must have been handed out"):
            one.tell(unknown, 1.0)
    with pytest.raises(UnknownDecisionError, match="its number is needed"):
        one.tell("7", 1.0)
    before = store.experiment("prices").head
    for wrong in (float("nan"), "much", None):
        with pytest.raises(InputError):
            one.tell(first, wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"18\.0 <= age <= 90\.0"):
        one.ask([17.0])
    assert store.experiment("prices").head == before, "bad input changes nothing"


def test_silence_is_learned_when_its_time_is_over_the_oldest_first(store: Store) -> None:
    shared = share(new(ttl=3, missing=0.0, rng=1), store, "prices")
    first, second = shared.ask([20.0]), shared.ask([30.0])
    shared.tell(second, 2.0)
    assert shared.policy().stats().held == 1
    shared.ask([40.0])  # so the time of the first is over
    assert shared.expire() == 1
    with pytest.raises(ExpiredDecisionError, match="was expired before"):
        shared.tell(first, 1.0)
    assert shared.policy().life.model.learned[0] == 1
    shared.ask([50.0])  # and so that of the second, which was held
    stats = shared.policy().stats()
    assert (stats.held, stats.expired, stats.told) == (0, 1, 1)
    assert shared.policy().life.model.learned[0] == 2
    assert state_of(shared) == folded(store, "prices")


def test_time_is_the_stores_and_passes_without_asking(store: Store) -> None:
    shared = share(new(ttl_seconds=0.2, rng=1), store, "prices")
    decision = shared.ask([20.0])
    assert shared.expire() == 0
    while not shared.expire():
        pass
    with pytest.raises(ExpiredDecisionError):
        shared.tell(decision, 1.0)
    kinds = [record.kind for record in store.read("prices", 0)]
    assert kinds[:2] == ["began", "asked"]
    assert kinds[-1] == "expired"


def test_a_decision_can_be_explained_from_its_event(store: Store) -> None:
    shared = share(new(start=[4.0]), store, "prices")
    decision = shared.ask([30.0])
    shared.tell(decision, 1.5)
    text = str(shared.policy().explain(decision))
    assert "for age 30, was price" in text
    assert "What is done today is price 4." in text
    untold = share(new(), store, "others").policy().explain([30.0])
    assert "Nobody has said what is done today; the middle of the box, price 5," in str(untold)


def test_a_decision_of_another_experiment_is_refused(store: Store) -> None:
    one, two = share(new(), store, "one"), share(new(), store, "two")
    mine, theirs = one.ask([30.0]), two.ask([30.0])
    assert mine.id != theirs.id
    for other in (theirs, theirs.id):
        with pytest.raises(UnknownDecisionError):
            one.tell(other, 1.0)
    one.tell(mine, 1.0)
    one.ask([30.0], key="k")
    with pytest.raises(InputError, match="a key is for one decision"):
        one.ask([30.0], key="k", within={"price": (2.0, 3.0)})


def test_an_experiment_that_has_not_begun_is_unknown(store: Store) -> None:
    store.create("half", "{}")
    with pytest.raises(UnknownExperimentError, match="must have begun"):
        SharedPolicy(store, "half")
    with pytest.raises(SettingsError, match="`every` must be"):
        share(new(), store, "prices", every=0)
    with pytest.raises(InputError, match="a key must be a text"):
        share(new(), store, "prices").ask([30.0], key="")


def test_a_pause_binds_everywhere(store: Store) -> None:
    one, two = share(new(start=[4.0]), store, "prices"), share(new(start=[4.0]), store, "prices")
    one.pause()
    assert two.ask([30.0]).role == "incumbent"
    assert two.ask([30.0]).value.tolist() == [4.0]
    two.resume()
    assert one.ask([30.0]).role == "explored"


def visit(shared: SharedPolicy, times: int, seed: int = 0) -> None:
    for age in np.random.default_rng(seed).uniform(18.0, 90.0, times):
        decision = shared.ask([float(age)])
        shared.tell(decision, payoff(decision))


def test_a_frozen_segment_binds_everywhere(any_store: Store) -> None:
    one, two = (share(new(), any_store, "prices", every=40) for _ in range(2))
    visit(one, 60)
    ages = np.linspace(60.0, 90.0, 7)[:, None]
    before, early = two.recommend_many(ages), two.ask([70.0])
    segment = one.freeze({"age": (60, 95)})
    assert segment.where == {"age": (60.0, 90.0)}
    assert two.frozen == [segment]
    for given in ({"age": (60.0, 90.0)}, {"age": (90.0, 60.0)}, {"aeg": (1, 2)}, {}):
        with pytest.raises(InputError, match="`segment`"):
            two.freeze(given)
    assert two.ask([70.0]).role == "best"
    two.tell(early, 1000.0)
    visit(two, 60, seed=1)
    two.freeze({"age": (50, 70)})
    visit(one, 30, seed=2)
    assert np.array_equal(one.recommend_many(ages), before)
    fresh = SharedPolicy(any_store, "prices")  # from a snapshot, and what came after it
    assert np.array_equal(fresh.recommend_many(ages), before)
    assert fresh.frozen == one.frozen == two.frozen
    assert replay(any_store, "prices").difference is None
    found = one.policy().explain(two.ask([70.0]).event)  # type: ignore[arg-type]
    assert "age 60 to 90, since" in found["text"]
    two.unfreeze(segment)
    one.unfreeze({"age": (50, 70)})
    assert fresh.frozen == []
    assert fresh.ask([70.0]).role == "explored"
    assert replay(any_store, "prices").difference is None


def test_of_two_who_freeze_one_segment_at_once_the_second_changes_nothing(store: Store) -> None:
    one, two = share(new(), store, "prices"), share(new(), store, "prices")
    visit(one, 30)
    entry = entry_of(events.SegmentFrozen({"age": [60.0, 90.0]}))
    store.append("prices", [entry])
    best = two.recommend([70.0])
    visit(one, 10, seed=1)
    store.append("prices", [entry])  # its process had not heard of the first
    assert [one.where for one in two.policy().frozen] == [{"age": (60.0, 90.0)}]  # type: ignore[union-attr]
    assert np.array_equal(two.recommend([70.0]), best)
    thawed = entry_of(events.SegmentUnfrozen({"age": [60.0, 90.0]}))
    for _ in range(2):
        store.append("prices", [thawed])
    assert two.frozen == []
    store.append("prices", [entry_of(events.SegmentFrozen({"height": [1.0, 2.0]}))])
    assert one.frozen == []


def test_with_a_clock_the_ledger_says_since_when(store: Store) -> None:
    one = share(new(ttl_seconds=60.0), store, "prices")
    one.freeze({"age": (60, 90)})
    [segment] = SharedPolicy(store, "prices").frozen
    assert isinstance(segment, Segment)
    assert segment.at == pytest.approx(time.time(), abs=60.0)
    assert segment.at == store.read("prices", 1, 10)[-1].time


def test_a_policy_may_be_shared_with_frozen_segments(store: Store) -> None:
    policy = new()
    policy.freeze({"age": (60, 90)})
    one = share(policy, store, "prices")
    assert one.frozen == policy.frozen
    visit(one, 30)
    assert Refold(store, "prices").life.segments
    assert replay(store, "prices").difference is None


def test_what_cannot_be_shared_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match="needs gradients"):
        share(ca.RobbinsMonro(AGE, PRICE, bins=2, step=1.0), store, "prices")
    busy = new()
    busy.ask([20.0])
    with pytest.raises(SettingsError, match="1 open decisions"):
        share(busy, store, "prices")
    with pytest.raises(SettingsError, match="can be saved"):
        share(new(start=lambda context: [3.0]), store, "prices")
    assert store.experiments() == []
    share(new(), store, "prices").ask([20.0])
    with pytest.raises(ExperimentConflictError, match="keeps its settings"):
        share(new(reach=0.3), store, "prices")
    monkeypatch.setattr(version, "FOLD_VERSION", 2)
    with pytest.raises(
        StoreError,
        match="is of version 1, but this server is of version 2: run `continuarm upgrade",
    ):
        share(new(), store, "prices")


def stencils(kind: str) -> ca.Policy:
    if kind == "static":
        return ca.StaticKWSA(AGE, PRICE, bins=2, step=1.0, rng=1, ttl=9)
    if kind == "adaptive":
        return ca.AdaptiveKWSA(AGE, PRICE, horizon=1000, step=1.0, rng=1, ttl=9)
    return ca.UniformUCB(AGE, PRICE, bins=2, arms=3, rng=1, ttl=9)


@pytest.mark.parametrize("kind", ["static", "adaptive", "arms"])
def test_decisions_that_change_the_state_are_made_one_after_the_other(
    kind: str, any_store: Store
) -> None:
    """As one process would have made them: who is asked in what order is all that counts."""
    store = any_store
    shared = [share(stencils(kind), store, "prices", every=20) for _ in range(2)]

    def visit(k: int) -> None:
        decision = shared[k % 2].ask([18.0 + 7.0 * k % 72.0], key=f"visit {k}")
        with suppress(ExpiredDecisionError):  # nine others were asked meanwhile
            if k % 7 == 0:
                shared[1 - k % 2].forget(decision)
            elif k % 5:
                shared[1 - k % 2].tell(decision, payoff(decision))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(visit, range(60)))
    one, two = shared
    assert one.ask([18.0], key="visit 0").id in {int(str(r.opens), 16) for r in asked_in(store)}
    assert state_of(one) == state_of(two) == folded(store, "prices")
    assert [r.position - 1 for r in asked_in(store)] == [
        json.loads(r.body)["folded"] for r in asked_in(store)
    ]
    assert one.policy().stats().asked == 60
    assert one.policy().stats().expired > 0
    assert replay(store, "prices").difference is None


def asked_in(store: Store) -> list[Record]:
    return [record for record in store.read("prices", 0) if record.kind == "asked"]


def test_a_process_whose_state_differs_decides_no_more(store: Store) -> None:
    one = share(new(rng=1), store, "prices", every=5)
    other = share(new(rng=1), store, "prices", every=5)
    other._replica.life.asked_of[0] += 1  # as if it had folded something else
    for _ in range(6):
        one.ask([20.0])
    other.recommend([20.0])
    with pytest.raises(
        StoreError, match=r"one state, but .* asked_per_bin\[0\]: restart this server"
    ):
        other.ask([20.0])
    one.ask([20.0])


def test_an_interrupted_fold_is_not_folded_twice(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = share(new(rng=1), store, "prices"), share(new(rng=1), store, "prices")
    for _ in range(3):
        one.ask([20.0])

    def interrupted(life: Life, record: Record, event: object) -> None:
        fold(life, record)
        raise KeyboardInterrupt

    monkeypatch.setattr(replica, "fold", interrupted)
    with pytest.raises(KeyboardInterrupt):
        two.recommend([20.0])
    monkeypatch.undo()
    assert two.policy().snapshot() == one.policy().snapshot()


def test_a_child_process_decides_with_numbers_of_its_own(store: Store) -> None:
    shared = share(new(rng=1), store, "prices")
    mine = shared.ask([20.0])
    child = os.fork()
    if child == 0:
        shared.ask([20.0])
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    opened = [record.opens for record in store.read("prices", 0) if record.opens]
    shared.ask([20.0])
    assert len(set(opened)) == 2
    assert int(opened[0] or "", 16) == mine.id
    assert state_of(shared) == folded(store, "prices")


WORKER = textwrap.dedent("""
    import json, sys
    import numpy as np
    import continuarm as ca
    from continuarm.ledger import share
    context, decision = ca.Box([18.0], [90.0]), ca.Box([1.0], [9.0])
    shared = share(ca.SurfaceSampling(context, decision), sys.argv[1], "prices", every=40)
    rng, k, waiting = np.random.default_rng(int(sys.argv[2])), 0, []
    while True:
        waiting.append(shared.ask([rng.uniform(18, 90)], key=f"{sys.argv[2]} {k}"))
        print(json.dumps(["asked", waiting[-1].id]), flush=True)
        if len(waiting) > 3:
            one = waiting.pop(0)
            shared.tell(one, float(one.value[0]))
            print(json.dumps(["told", one.id]), flush=True)
        k += 1
""")


def test_nothing_acknowledged_is_lost_when_workers_are_killed(tmp_path: Path) -> None:
    where, acknowledged = tmp_path / "shop.db", []
    for round_ in range(2):
        workers = [
            subprocess.Popen(
                [sys.executable, "-c", WORKER, str(where), str(2 * round_ + k)],
                stdout=subprocess.PIPE,
                text=True,
            )
            for k in range(2)
        ]
        for worker in workers:
            assert worker.stdout is not None
            acknowledged += [worker.stdout.readline() for _ in range(40 + 25 * round_)]
        for worker in workers:
            worker.send_signal(signal.SIGKILL)
        for worker in workers:
            acknowledged += [line for line in worker.communicate()[0].splitlines() if line]
    asked = {id_ for what, id_ in map(json.loads, acknowledged) if what == "asked"}
    told = {id_ for what, id_ in map(json.loads, acknowledged) if what == "told"}
    with closing(open_store(where)) as store:
        head = store.experiment("prices").head
        records = [r for after in range(0, head, 1000) for r in store.read("prices", after)]
        opened = [int(r.opens, 16) for r in records if r.opens is not None]
        closed = [int(r.closes, 16) for r in records if r.closes is not None]
        assert asked <= set(opened)
        assert told <= set(closed)
        assert len(set(opened)) == len(opened), "no decision counts twice"
        assert len(set(closed)) == len(closed), "no payoff counts twice"
        assert state_of(SharedPolicy(store, "prices")) == folded(store, "prices")


def test_many_that_are_over_their_time_are_given_up_in_groups(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("continuarm.ledger.desk.MOST_DUE", 3)
    shared, sizes = share(new(ttl=1000), store, "prices"), list[int]()
    for _ in range(10):
        shared.ask([30.0])
    shared.change(ttl=1)
    append = store.append

    def counted(name: str, group: Sequence[Entry], onto: int | None = None) -> Appended:
        sizes.append(len(group))
        return append(name, group, onto)

    monkeypatch.setattr(store, "append", counted)
    assert shared.expire() == 10
    assert sizes == [3, 3, 3, 1]
    assert shared.expire() == 0


def test_a_successor_of_nothing_learned_begins_and_one_that_is_refused_leaves_no_name(
    store: Store,
) -> None:
    share(new(), store, "prices")
    successor = share(new(), store, "after", after="prices")
    successor.tell(successor.ask([30.0]), 1.0)
    other = ca.SurfaceSampling(AGE, ca.Box([1.0], [9.0], names=["fee"]))
    with pytest.raises(SettingsError, match="the coordinates of its predecessor"):
        share(other, store, "fees", after="prices")
    assert [one.name for one in store.experiments()] == ["after", "prices"]
    share(other, store, "fees")


def test_a_ledger_that_was_cut_and_has_grown_again_is_folded_anew(tmp_path: Path) -> None:
    """Also where the clock is behind the ledger, so that all times are alike."""
    where, copy = tmp_path / "shop.db", tmp_path / "copy.db"
    with closing(open_store(where)) as store, closing(open_store(where)) as second:
        one = share(new(rng=1), store, "prices")
        one.ask([37.0])
        with closing(sqlite3.connect(where)) as file, file:
            file.execute("UPDATE experiments SET time = time + 3600.0")
        with closing(sqlite3.connect(where)) as file, closing(sqlite3.connect(copy)) as backup:
            file.backup(backup)
        for _ in range(3):
            one.tell(one.ask([50.0]), 1.0)
        with closing(sqlite3.connect(copy)) as backup, closing(sqlite3.connect(where)) as file:
            backup.backup(file)
        two = share(new(rng=2), second, "prices")
        for _ in range(3):
            two.tell(two.ask([60.0]), 2.0)
        one.ask([40.0])
        assert state_of(one) == folded(store, "prices")
