"""Commands on ledgers: what a store has, moved, folded again, taken over, erased."""

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import psycopg
import pytest
from click.testing import CliRunner, Result

import continuarm as ca
from continuarm.cli import cli
from continuarm.errors import ContinuarmError, StoreError, UnknownDecisionError
from continuarm.ledger import SharedPolicy, share, version
from continuarm.ledger.desk import Desk
from continuarm.ledger.purging import purge
from continuarm.ledger.replaying import replay
from continuarm.ledger.replica import Replica
from continuarm.live.limits import within_of
from continuarm.live.policy import Policy
from continuarm.store import Store, open_store
from tests.service import until
from tests.serving import served, until_ready
from tests.worlds import ROOT

AGE = ca.Box([18.0], [90.0], names=["age"])
PRICE = ca.Box([1.0], [9.0], names=["price"])
KINDS = ["sqlite", "postgresql"]
HERE = "/v1/experiments/prices"


@pytest.fixture(params=KINDS)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "shop.db")
    found: str = request.getfixturevalue("server").fresh(f"cli-{request.node.name[:50]}")
    return found


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    with closing(open_store(address)) as opened:
        yield opened


def run(*arguments: str, given: str | None = None) -> str:
    """What a command prints; what it refuses is raised."""
    done: Result = CliRunner().invoke(cli, arguments, input=given, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.stdout


def refused(*arguments: str, given: str | None = None) -> str:
    with pytest.raises(ContinuarmError) as caught:
        run(*arguments, given=given)
    return str(caught.value)


def new(**options: object) -> ca.Policy:
    return ca.SurfaceSampling(AGE, PRICE, rng=1, **options)  # type: ignore[arg-type]


def visit(shared: SharedPolicy, times: int, *, every: int = 1) -> list[ca.Decision]:
    """Customers whose best price rises with their age; of so many, one pays nothing yet."""
    waiting = []
    for k in range(times):
        decision = shared.ask([18.0 + 7.0 * k % 72.0])
        if every > 1 and k % every == 0:
            waiting.append(decision)
        else:
            shared.tell(decision, 3.0 - (decision.value[0] - 0.05 * decision.context[0]) ** 2)
    return waiting


def test_an_experiment_moves_to_another_store_by_a_file(
    address: str, store: Store, tmp_path: Path
) -> None:
    shared, lines, other = share(new(), store, "prices"), tmp_path / "a", str(tmp_path / "b.db")
    [waiting, *_] = visit(shared, 10, every=5)
    run("export", "prices", "--to", str(lines), "--store", address)
    assert run("import", str(lines), "--as", "prices-b", "--store", other) == (
        f"prices-b: {store.experiment('prices').head} events\n"
    )
    with closing(open_store(other)) as moved:
        assert moved.read("prices-b", 0) == store.read("prices", 0)
        assert moved.snapshots("prices-b") == store.snapshots("prices")
        there = share(new(), moved, "prices-b")
        assert there.policy().snapshot() == shared.policy().snapshot()
        there.tell(waiting.id, 1.5)
        visit(there, 3)
    piped = run("export", "prices", "--store", address)
    assert piped == lines.read_text()
    assert "prices-c" in run("import", "-", "--as", "prices-c", "--store", other, given=piped)
    listed = run("experiments", "--store", other)
    assert [line.split()[0] for line in listed.splitlines()] == [
        "experiment",
        "prices-b",
        "prices-c",
    ]


def test_what_cannot_be_moved_is_one_line_and_changes_nothing(tmp_path: Path) -> None:
    where, lines, odd = str(tmp_path / "shop.db"), tmp_path / "lines", tmp_path / "odd"
    with closing(open_store(where)) as store:
        share(new(), store, "prices")
    assert "must be created first" in refused("export", "typo", "--to", str(odd), "--store", where)
    assert not odd.exists()
    run("export", "prices", "--to", str(lines), "--store", where)
    assert "a file that can be made" in refused(
        "export", "prices", "--to", str(lines), "--store", where
    )
    assert "a name that is free" in refused("import", str(lines), "--store", where)
    assert "can be read" in refused("import", str(odd), "--store", where)
    first, *rest = lines.read_bytes().splitlines(keepends=True)
    settings = json.dumps({**json.loads(first), "settings": "{"}).encode() + b"\n"
    odd.write_bytes(b"".join([settings, *rest]))
    assert "line 1: its settings: they must be an object of JSON" in refused(
        "import", str(odd), "--as", "odd", "--store", where
    )
    for content in (b"{}\n", b"\xff\n", first, first + rest[0] + b"\xff\n"):
        odd.write_bytes(content)
        assert refused("import", str(odd), "--as", "odd", "--store", where)
    assert [json.loads(first)["name"]] == [
        line.split()[0] for line in run("experiments", "--store", where).splitlines()[1:]
    ]


def test_what_could_not_be_imported_is_not_exported(tmp_path: Path) -> None:
    where, file = str(tmp_path / "shop.db"), tmp_path / "lines"
    with closing(open_store(where)) as store:
        visit(share(new(), store, "prices"), 3)

    def after(statement: str) -> None:
        with closing(sqlite3.connect(where)) as connection:
            connection.execute(statement)
            connection.commit()

    export = ("export", "prices", "--to", str(file), "--store", where)
    after("UPDATE snapshots SET digest = 'x'")
    run(*export)  # with the copy that the ledger has
    run("import", str(file), "--as", "copy", "--store", where)
    assert "copy: 7 events and 1 snapshot are whole" in checked_text(where)
    file.unlink()
    after(WITHOUT_COPY)
    assert "'prices' cannot: none of its snapshots can be read" in refused(*export)
    after("UPDATE experiments SET settings = '{' WHERE name = 'prices'")
    assert "'prices' cannot: its settings: they must be an object of JSON" in refused(*export)
    assert not file.exists()
    said = checked_text(where).splitlines()
    assert (
        "prices: its settings: they must be an object of JSON, as they were written, but are '{'"
        in said
    )
    assert not any("Expecting" in line for line in said)


def test_an_import_says_that_what_it_took_is_archived(tmp_path: Path) -> None:
    where, file = str(tmp_path / "shop.db"), str(tmp_path / "lines")
    with closing(open_store(where)) as store:
        share(new(), store, "prices")
        store.archive("prices")
    run("export", "prices", "--to", file, "--store", where)
    said = run("import", file, "--as", "copy", "--store", where)
    assert said == "copy: 1 event; it is archived\n"


def checked_text(where: str) -> str:
    return CliRunner().invoke(cli, ["check", "--store", where]).output


@pytest.mark.parametrize(
    "command",
    [
        ["experiments"],
        ["export", "prices"],
        ["replay", "prices"],
        ["upgrade", "prices"],
        ["purge", "prices", "--before", "2030-01-01"],
        ["token", "list"],
        ["token", "revoke", "shop"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("kind", ["no file", "an empty file", "an empty database"])
def test_a_command_that_looks_makes_no_store(
    command: list[str], kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    where = str(tmp_path / "typo.db")
    if kind == "an empty file":
        Path(where).touch()
    if kind == "an empty database":
        where = request.getfixturevalue("server").fresh(f"empty-{'-'.join(command)}")
    assert "a store must be there" in refused(*command, "--store", where)
    left = {"an empty file": [0]}.get(kind, [])
    assert [path.stat().st_size for path in tmp_path.glob("typo*")] == left
    assert "a store must be there" in refused(*command, "--store", where), "it made one"


def lagging(store: Store, name: str = "prices") -> Desk:
    """Who decides from what it has folded until now, whatever comes."""
    replica = Replica(store, name)
    replica.catch_up()
    return Desk(replica)


def test_a_replay_makes_every_decision_again_also_those_of_servers_that_lagged(
    address: str, store: Store
) -> None:
    shared = share(new(ttl=30, missing=0.0, share=0.2), store, "prices", every=25)
    visit(shared, 20, every=4)
    late = lagging(store)
    visit(shared, 20, every=3)
    later = lagging(store)
    for k in range(30):
        desk = late if k % 3 else later
        within = {"price": (2.0, 3.0 + 0.1 * k)} if k % 2 else None
        limits = None if within is None else within_of(within, PRICE)
        store.append("prices", [desk.asked(AGE.point([20.0 + k]), limits, None).entry])
        if k == 15:
            shared.pause()
    shared.resume()
    visit(shared, 5)
    found = replay(store, "prices")
    asked = shared.policy().stats().asked
    assert (found.difference, found.decisions, found.earlier) == (None, asked, 0)
    assert found.events == store.experiment("prices").head - 1
    assert found.snapshots == len(store.snapshots("prices")) > 3
    same = f"{asked} decisions and {found.snapshots} snapshots are the same"
    said = run("replay", "prices", "--store", address)
    assert f"{same}; the largest difference is 0\n" in said


WITHOUT_COPY = (
    "UPDATE events SET checksum = NULL, "
    "body = CASE kind WHEN 'began' THEN json_remove(body, '$.state') ELSE body END"
)
TAMPERED = {
    "a payoff": ("UPDATE events SET body = json_set(body, '$.payoff', 9.5) WHERE position = 13",
                 "at position 20: the state was"),
    "a decision": ("UPDATE events SET body = replace(body, '\"explored\"', '\"best\"') "
                   "WHERE position = 20",
                   "at position 20: decision .*, made at 19: role was best, is explored"),
    "a draw": ("UPDATE events SET opens = replace(opens, '0000000a', '0000ffff') "
               "WHERE position = 20",
               r"at position 20: decision"),
    "a record": ("DELETE FROM events WHERE position = 12", "at position 12: the record is gone"),
    "nonsense": ("UPDATE events SET body = '[1]' WHERE position = 20",
                 "at position 20: a decision must say"),
    "a closing": ("UPDATE events SET closes = NULL WHERE position = 9", "at position 9"),
    "a snapshot": ("UPDATE snapshots SET state = CAST(state || ' ' AS BLOB) WHERE position = 10",
                   "at position 10: the snapshot is damaged"),
    "the beginning": ("UPDATE snapshots SET digest = 'other' WHERE position = 1",
                      "at position 1: the snapshot is not the beginning's"),
}  # fmt: skip


@pytest.mark.parametrize("what", TAMPERED)
def test_a_replay_names_the_first_difference(what: str, tmp_path: Path) -> None:
    where = str(tmp_path / "shop.db")
    with closing(open_store(where)) as store:
        visit(share(new(), store, "prices", every=10), 15)
    statement, difference = TAMPERED[what]
    with closing(sqlite3.connect(where)) as connection:
        assert connection.execute(statement).rowcount == 1
        connection.execute(WITHOUT_COPY)  # as in an earlier version
        connection.commit()
    with pytest.raises(StoreError, match="a replay must give what was, but.*" + difference):
        run("replay", "prices", "--store", where)


def test_a_snapshot_of_another_state_is_a_difference(tmp_path: Path) -> None:
    where = str(tmp_path / "shop.db")
    with closing(open_store(where)) as store:
        one = share(new(), store, "prices", every=10)
        visit(one, 2)
        one._replica.life.asked_of[0] += 1  # as if it had folded something else
        visit(one, 10)
    assert "at position 10: the state was" in refused("replay", "prices", "--store", where)


ANOTHER = """
import sys
from continuarm.ledger import share, version
version.FOLD_VERSION = 2
from continuarm.ledger.replaying import replay
from continuarm.store import open_store
from tests.test_ledger_commands import new, run, visit
address, waiting = sys.argv[1:]
print(run("upgrade", "prices", "--store", address), end="")
input()
store = open_store(address)
newer = share(new(), store, "prices", every=20)
newer.tell(int(waiting), 1.5)
visit(newer, 15)
print(replay(store, "prices"))
"""


def test_another_version_takes_over_and_the_one_before_stops(address: str, store: Store) -> None:
    context = {"context": [30.0]}
    shared = share(new(), store, "prices", every=20)
    [waiting, *_] = visit(shared, 15, every=5)
    late = lagging(store)
    assert "of this version already" in run("upgrade", "prices", "--store", address)
    with served(open_store(address)) as old:
        assert old.get("/readyz").status_code == 200
        command = [sys.executable, "-c", ANOTHER, address, str(waiting.id)]
        with subprocess.Popen(command, stdin=-1, stdout=-1, text=True, cwd=ROOT) as another:
            assert another.stdout is not None
            assert "taken over from version 1" in another.stdout.readline()
            asked = late.asked(AGE.point([20.0]), None, None)  # by who has not heard of it
            assert store.append("prices", [asked.entry]).outcomes[0].refused is None
            said, _ = another.communicate("go on\n")
        assert "decisions=15, " in said
        assert "earlier=1, " in said
        assert "difference=None" in said
        until_ready(old, 503)
        answer = old.post(f"{HERE}/decisions", json=context)
        assert answer.status_code == 503
        assert "stop it, and start one of that version" in answer.json()["message"]
        assert "'prices' is of version 2" in old.get("/readyz").text
        with pytest.raises(StoreError, match="is of version 2"):
            shared.ask([30.0])
        assert "taken over from version 2" in run("upgrade", "prices", "--store", address)
        visit(shared, 3)
        until_ready(old, 200)
        assert old.post(f"{HERE}/decisions", json=context).status_code == 200
    assert replay(store, "prices").difference is None


def test_a_server_of_another_version_goes_on_with_other_experiments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = tmp_path / "shop.db"
    with closing(open_store(where)) as store:
        share(new(), store, "prices")
        monkeypatch.setattr(version, "FOLD_VERSION", 2)
        share(new(), store, "others")
    with served(open_store(where)) as server:
        context = {"context": {"age": 30.0}}
        assert server.post(f"{HERE}/decisions", json=context).status_code == 503
        assert server.post("/v1/experiments/others/decisions", json=context).status_code == 200
        ready = server.get("/readyz")
        assert (ready.status_code, "continuarm upgrade prices" in ready.text) == (200, True)
        run("upgrade", "prices", "--store", str(where))
        until(lambda: server.post(f"{HERE}/decisions", json=context).status_code == 200)


def test_a_state_that_another_version_cannot_read_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = str(tmp_path / "shop.db")
    with closing(open_store(where)) as store:
        share(new(), store, "prices")
    with closing(sqlite3.connect(where)) as connection:
        connection.execute("UPDATE snapshots SET state = CAST('{}' AS BLOB)")
        connection.execute(WITHOUT_COPY)
        connection.commit()
    monkeypatch.setattr(version, "FOLD_VERSION", 2)
    said = refused("upgrade", "prices", "--store", where)
    assert "of 'prices' each of those it has, at 1, is damaged: restore a backup" in said


def on_disk(address: str, request: pytest.FixtureRequest) -> bytes:
    """All bytes that a store has on the disk."""
    if not address.startswith("postgresql"):
        found = sorted(Path(address).parent.glob(f"{Path(address).name}*"))
    else:
        server = request.getfixturevalue("server")
        with psycopg.connect(server.address, autocommit=True) as connection:
            connection.execute("CHECKPOINT")
        found = sorted((server.data / "base").rglob("*"))
    return b"".join(path.read_bytes() for path in found if path.is_file())


def has(content: bytes, age: float) -> list[bool]:
    """Whether a context is there, as text and as a number."""
    return [repr(age).encode() in content, np.float64(age).tobytes() in content]


def test_a_purge_erases_contexts_for_good_and_open_decisions_can_be_told(
    address: str, store: Store, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    gone, early, later = 37.12345678901, 41.98765432101, 55.55443322111
    shared = share(new(), store, "prices", every=7)
    shared.tell(shared.ask([gone]), 1.5)
    crossing, waiting = shared.ask([gone + 0.5]), shared.ask([early], key="order-17")
    visit(shared, 10)
    late = lagging(store)
    between = store.experiment("prices").time + 0.2
    time.sleep(0.4)
    shared.tell(shared.ask([later]), 1.5)
    shared.tell(crossing, 2.0)
    visit(shared, 5)
    before = shared.policy().snapshot()
    assert has(on_disk(address, request), gone)[0]
    assert run("purge", "prices", "--before", "2020-01-01", "--store", address).endswith(
        "0 events up to position 0 are erased\n"
    )
    found = purge(store, "prices", between)
    content = on_disk(address, request)
    assert not any(has(content, gone) + has(content, gone + 0.5)), "they must be gone"
    assert has(content, early)[0], "it is open"
    [beginning] = [r for r in store.read("prices", 0) if r.kind == "began"]
    assert found == (store.experiment("prices").begins, found.until - 1, 1)
    assert beginning.position == store.experiment("prices").head
    assert shared.policy().snapshot() == before
    assert share(new(), store, "prices").policy().snapshot() == before
    again = replay(store, "prices")
    assert (again.difference, again.begins) == (None, found.until)
    assert shared.ask([early], key="order-17").id == waiting.id
    with pytest.raises(UnknownDecisionError, match="must have been handed out"):
        shared.tell(crossing, 2.0)  # it was told, which is erased
    late.replica.catch_up()
    assert Policy.of_life(late.replica.life).snapshot() == shared.policy().snapshot()
    lines, moved = run("export", "prices", "--store", address), str(tmp_path / "moved.db")
    run("import", "-", "--store", moved, given=lines)
    with closing(open_store(moved)) as other:
        share(new(), other, "prices").tell(waiting.id, 2.0)
        assert replay(other, "prices").difference is None
    shared.tell(waiting.id, 2.0)
    store.archive("prices")
    found = purge(store, "prices", time.time() + 60.0)
    assert (found.open, store.experiment("prices").archived) == (0, True)
    content = on_disk(address, request)
    assert not any(has(content, early) + has(content, later))
    store.archive("prices", False)
    visit(shared, 3)
    assert replay(store, "prices").difference is None
    assert "0 events" in run("purge", "prices", "--before", "2020-01-01", "--store", address)


def test_held_payoffs_are_learned_before_their_contexts_are_erased(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "shop.db")) as store:
        shared = share(new(ttl=6, missing=0.0), store, "prices", every=5)
        visit(shared, 8)  # the payoffs of the last ones are held
        last, between = store.experiment("prices").head, store.experiment("prices").time + 0.1
        time.sleep(0.2)
        visit(shared, 8)
        before = shared.policy().snapshot()
        found = purge(store, "prices", between)
        assert last < found.until < store.experiment("prices").head - 1
        assert replay(store, "prices").difference is None
        assert share(new(ttl=6, missing=0.0), store, "prices").policy().snapshot() == before


def test_a_purge_in_memory_leaves_what_is_open() -> None:
    with closing(open_store(":memory:")) as store:
        shared = share(new(), store, "prices")
        [waiting, *_] = visit(shared, 6, every=3)
        assert purge(store, "prices", time.time() + 60.0).open == 2
        shared.tell(waiting.id, 1.0)
        assert purge(store, "prices", time.time() + 60.0).open == 1
        assert replay(store, "prices").difference is None
