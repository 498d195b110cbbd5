"""check_store: ledgers in one order, decisions opened and closed once, nothing half done."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial

from continuarm.errors import ExperimentConflictError, InputError, UnknownExperimentError
from continuarm.store.protocol import Store
from continuarm.store.records import (
    ASKED_BEFORE,
    CLOSED_BEFORE,
    KEY_TAKEN,
    MOVED_ON,
    NEVER_ASKED,
    Entry,
    Snapshot,
    Token,
)

__all__ = ["check_store"]

WRITERS, GROUPS = 4, 25


def check_store(make: Callable[[], Store]) -> None:
    """Check the contract of a store.

    make : opens the same store each time it is called, at first an empty one.

    >>> from continuarm.store.memory import MemoryStore
    >>> store = MemoryStore()
    >>> check_store(lambda: store)
    """
    with closing(make()) as store:
        _check_experiments(store)
        _check_once(store)
        _check_onto(store)
        _check_appending(store)
        _check_one_order(store)
        _check_glancing(store)
        _check_waiting(store)
        _check_snapshots(store)
        _check_retention(store)
        _check_archive(store)
        _check_texts(store)
        _check_tokens(store)
        _check_clock(store)
        names = [experiment.name for experiment in store.experiments()]
        before = {name: store.read(name, 0) for name in names}
    with closing(make()) as again:
        for name, records in before.items():
            assert again.read(name, 0) == records, "what was appended must be there afterwards"


def _check_experiments(store: Store) -> None:
    assert store.experiments() == [], "`make` must open an empty store at first"
    first = store.create("one", '{"a": 1}')
    assert first == store.experiment("one"), "an experiment must be found by its name"
    assert (first.head, first.begins, first.archived) == (0, 0, False)
    assert store.create("one", '{"a": 1}') == first, "creating it again must change nothing"
    _refuses(ExperimentConflictError, lambda: store.create("one", '{"a": 2}'))
    for verb in (store.experiment, store.archive):
        _refuses(UnknownExperimentError, lambda verb=verb: verb("nobody's"))  # type: ignore[misc]
    for name in ("", "a\nb", "x" * 101):
        _refuses(InputError, lambda name=name: store.create(name, ""))  # type: ignore[misc]
    odd = "'; DROP TABLE events; -- ☃ %s ?"
    store.create(odd, odd)
    assert store.experiment(odd).settings == odd, "names and settings are data"
    assert [e.name for e in store.experiments()] == sorted(["one", odd])


def _check_once(store: Store) -> None:
    """Each decision is opened once and closed once; a refusal keeps back nothing else."""
    store.create("once", "")
    group = [
        Entry("asked", "A", opens="a", key="k"),
        Entry("told", "T", closes="a"),
        Entry("forgotten", "F", closes="a"),
        Entry("asked", "B", opens="a"),
        Entry("asked", "C", opens="c", key="k"),
        Entry("told", "U", closes="z"),
        Entry("asked", "D", opens="d"),
    ]
    outcomes, head = store.append("once", group)
    refused = [None, None, CLOSED_BEFORE, ASKED_BEFORE, KEY_TAKEN, NEVER_ASKED, None]
    assert [o.refused for o in outcomes] == refused, "an entry must be refused by its own fault"
    assert [o.record.body if o.record else None for o in outcomes] == [
        "A", "T", "T", "A", "A", None, "D",
    ], "a refusal must show the record that stands in its way"  # fmt: skip
    again, same = store.append("once", group)
    refused = [KEY_TAKEN, CLOSED_BEFORE, CLOSED_BEFORE, ASKED_BEFORE, KEY_TAKEN, NEVER_ASKED]
    assert [o.refused for o in again] == [*refused, ASKED_BEFORE], "also when it came before"
    assert head == same == 3, "the head must be said, also where all is refused"
    records = store.read("once", 0)
    assert [r.position for r in records] == [1, 2, 3], "positions must have no gaps"
    assert [r.body for r in records] == ["A", "T", "D"]
    assert store.read("once", 1, 1) == records[1:2], "reading must begin after a position"
    assert store.opening("once", "a") == store.keyed("once", "k") == records[0]
    assert store.closing("once", "a") == records[1]
    assert store.closing("once", "d") is store.opening("once", "z") is None
    assert store.keyed("once", "nobody's") is None
    store.append("once", [Entry("paused", "1"), Entry("paused", "2"), Entry("resumed", "3")])
    latest = [store.latest("once", kind) for kind in ("paused", "resumed", "frozen")]
    assert latest == [*store.read("once", 4), None], "the newest of a kind must be found"


def _check_onto(store: Store) -> None:
    store.create("onto", "")
    entry = Entry("asked", "")
    assert store.append("onto", [entry], onto=0).outcomes[0].refused is None
    assert store.append("onto", [entry, entry], onto=0).outcomes[1].refused == MOVED_ON
    assert store.experiment("onto").head == 1, "a group for another head must change nothing"
    assert store.append("onto", [entry], onto=1).outcomes[0].refused is None


def _check_appending(store: Store) -> None:
    store.create("at once", "")
    group = [Entry("asked", "A", opens="a"), Entry("told", "U", closes="z")]
    with store.appending("at once", group) as (outcomes, head):
        assert head == 1
        assert [o.refused for o in outcomes] == [None, NEVER_ASKED], "outcomes must be known"
    assert [r.body for r in store.read("at once", 0)] == ["A"], "it must be there at the end"
    _refuses(InputError, store.appending("at once", [Entry("asked", "\0")]).__enter__)
    with store.appending("at once", [Entry("told", "T", closes="a")]) as (outcomes, head):
        assert head == 2
        assert [o.refused for o in outcomes] == [None], "a refusal must not keep back the next"
    assert store.experiment("at once").head == 2


def _check_one_order(store: Store) -> None:
    """Who reads while others append misses nothing, and time never goes back."""
    store.create("order", "")

    def write(writer: int) -> None:
        for k in range(GROUPS):
            group = [Entry("asked", f"{writer}", opens=f"{writer}-{k}-{j}") for j in range(3)]
            store.append("order", [*group, Entry("asked", "", opens=f"shared-{k}")])

    def follow() -> list[int]:
        seen: list[int] = []
        while len(seen) < GROUPS * (3 * WRITERS + 1):
            assert store.wait("order", len(seen), 30.0), "what is appended must be heard of"
            seen += [record.position for record in store.read("order", len(seen))]
        return seen

    with ThreadPoolExecutor(WRITERS + 1) as pool:
        seen = pool.submit(follow)
        list(pool.map(write, range(WRITERS)))
        positions = seen.result()
    assert positions == list(range(1, len(positions) + 1)), "a reader must miss nothing"
    records = store.read("order", 0)
    times = [record.time for record in records]
    assert times == sorted(times), "time must not go back"
    opened = [record.opens for record in records]
    assert len(set(opened)) == len(opened), "each decision must be opened once"


def _check_glancing(store: Store) -> None:
    """Who glances sees that others have appended, or nothing at all."""
    store.create("glance", "")
    seen = store.glance()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(store.append, "glance", [Entry("asked", "")]).result()
    assert seen is None or store.glance() != seen, "what others append must be seen at a glance"


def _check_waiting(store: Store) -> None:
    store.create("wait", "")
    assert not store.wait("wait", 0, 0.0), "nothing is there yet"
    with ThreadPoolExecutor(1) as pool:
        heard = pool.submit(store.wait, "wait", 0, 30.0)
        store.append("wait", [Entry("asked", "")])
        assert heard.result(), "who waits must hear of it"
        heads = store.wait_for_any({}, 0.0)
        assert heads["wait"] == 1, "heads must be known"
        assert store.wait_for_any(heads, 0.0) == heads, "nothing is new"
        more = pool.submit(store.wait_for_any, heads, 30.0)
        store.append("wait", [Entry("asked", "")])
        assert more.result() == heads | {"wait": 2}, "who waits for any must hear of it"


def _check_snapshots(store: Store) -> None:
    """Snapshots stand for what was erased."""
    name, state = "snapshots", bytes(range(256))
    store.create(name, "")
    store.append(name, [Entry("asked", str(k), opens=str(k), key=str(k)) for k in range(4)])
    assert store.newest(name, "1") is None
    for position, version in ((1, "1"), (3, "1"), (3, "2")):
        snapshot = Snapshot(position, version, f"{position}", state)
        assert store.keep(name, snapshot) == snapshot
        assert store.keep(name, snapshot._replace(digest="other")) == snapshot
    assert store.newest(name, "1") == Snapshot(3, "1", "3", state)
    _refuses(InputError, lambda: store.erase(name, 2))  # nothing stands for it
    _refuses(InputError, lambda: store.erase(name, 5))
    closing = [Entry("told", "", closes="0"), Entry("told", "", closes="1")]
    assert [o.refused for o in store.append(name, closing).outcomes] == [None, None]
    [*_, open_, last] = store.read(name, 0)[:4]
    store.erase(name, 3)
    assert [r.position for r in store.read(name, 0)] == [4, 5, 6], "what was erased must be gone"
    assert store.opening(name, "0") is store.keyed(name, "0") is None
    assert store.opening(name, "2") == store.keyed(name, "2") == open_, "open ones must stay"
    assert (store.kept_open(name), store.read(name, 3, 1)) == ([open_], [last])
    assert store.experiment(name).begins == 3
    assert store.newest(name, "2") == Snapshot(3, "2", "3", state)
    _refuses(InputError, lambda: store.erase(name, 1))
    closing = [Entry("told", "", closes=k) for k in ("0", "2", "3", "4")]
    told = store.append(name, closing).outcomes
    assert [o.refused for o in told] == [CLOSED_BEFORE, None, None, NEVER_ASKED]
    assert store.experiment(name).head == 8, "positions must go on"
    store.erase(name, 3)
    assert store.kept_open(name) == [], "what is closed must be gone"


def _check_retention(store: Store) -> None:
    """Of many snapshots a few stay: beginnings, the newest of a version, one for each day."""
    name = "retention"
    store.create(name, "")
    store.append(name, [Entry("asked", "")] * 9)
    store.append(name, [Entry("began", '{"position": 3}')])
    for position in range(1, 9):
        store.keep(name, Snapshot(position, "1", f"{position}", b"state"), stays=position == 2)
    store.keep(name, Snapshot(1, "2", "other", b"other"))
    kept = store.kept(name)
    assert [(one.position, one.version, one.digest) for one in kept] == [
        (1, "2", "other"), (2, "1", "2"), (3, "1", "3"), (6, "1", "6"), (7, "1", "7"),
        (8, "1", "8"),
    ], "beginnings and the newest must stay, and others be let go"  # fmt: skip
    assert kept[1].time == float("inf"), "what stays must say so"
    assert abs(kept[-1].time - store.clock()) < 3600.0, "the time of the others must be known"
    found = [store.snapshot(name, one.position, one.version) for one in kept]
    assert found == store.snapshots(name), "a snapshot must be found by its place"
    assert store.snapshot(name, 8, "2") is store.snapshot(name, 4, "1") is None
    store.keep(name, Snapshot(6, "1", "6", b"state"), stays=True)
    for position in (4, 9, 10):
        store.keep(name, Snapshot(position, "1", "", b""))
        assert store.snapshot(name, position, "1") is not None, "the one kept last must be there"
    positions = [one.position for one in store.kept(name)]
    assert positions == [1, 2, 3, 6, 8, 9, 10], "what stays later must stay, too"


def _check_archive(store: Store) -> None:
    store.create("old", "")
    store.archive("old")
    assert store.experiment("old").archived
    _refuses(ExperimentConflictError, lambda: store.append("old", [Entry("asked", "")]))
    store.archive("old", False)
    assert store.append("old", [Entry("asked", "")]).outcomes[0].refused is None


def _check_clock(store: Store) -> None:
    """Times go on with the clock, ahead of it by an offset, and never go back."""
    store.create("clock", "")
    appended = [store.append("clock", [Entry("asked", "", opens="a")])]
    before, entry = store.clock(), Entry("clock-set", "{}")
    appended.append(store.set_clock("clock", entry, 3600.0))
    appended.append(store.append("clock", [Entry("told", "", closes="a")]))
    appended.append(store.set_clock("clock", entry, 0.0))
    times = [record.time for one in appended for _, record in one.outcomes if record is not None]
    assert len(times) == 4, "every entry must be appended"
    assert times == sorted(times), "times may not go back"
    assert times[1] >= before + 3600.0, "an offset must be added to the clock"
    assert times[3] == times[2], "times must stand still until the clock has caught up"
    assert store.experiment("clock").clock_offset == 0.0


def _check_texts(store: Store) -> None:
    """Text that no database takes is refused by every store."""
    store.create("texts", "")
    for text in ("a\0", "\ud800"):
        entries = [Entry("asked", ""), Entry("asked", "", key=text)]
        _refuses(InputError, lambda entries=entries: store.append("texts", entries))  # type: ignore[misc]
        _refuses(InputError, lambda text=text: store.create("more", text))  # type: ignore[misc]
        _refuses(InputError, partial(store.revoke_token, text))
        for look in (store.experiment, store.archive):
            _refuses(UnknownExperimentError, partial(look, text))
        _refuses(UnknownExperimentError, partial(store.read, text, 0))
        _refuses(UnknownExperimentError, partial(store.append, text, [Entry("asked", "")]))
        found = (look("texts", text) for look in (store.opening, store.closing, store.keyed))
        assert list(found) == [None] * 3, "what no database takes must be the name of nothing"
    assert store.experiment("texts").head == 0


def _check_tokens(store: Store) -> None:
    shop, page = Token("shop", "decide", "aa", 1.5), Token("page", "read", "bb", 2.5)
    assert not store.tokens_needed(), "a store without tokens must need none"
    for token in (shop, page):
        store.add_token(token)
    assert store.tokens() == [page, shop], "tokens must be found by name"
    _refuses(ExperimentConflictError, lambda: store.add_token(shop._replace(hashed="cc")))
    store.revoke_token("shop")
    assert store.tokens() == [page], "what is revoked must be gone"
    _refuses(InputError, lambda: store.revoke_token("shop"))
    store.revoke_token("page")
    assert (store.tokens(), store.tokens_needed()) == ([], True), "the last one opens no store"
    store.add_token(shop)
    store.disable_tokens()
    assert (store.tokens(), store.tokens_needed()) == ([], False)


def _refuses(kind: type[Exception], verb: Callable[[], object]) -> None:
    try:
        verb()
    except kind:
        return
    raise AssertionError(f"{kind.__name__} must be raised, but was not")
