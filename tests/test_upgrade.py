"""Another version takes a ledger over, whatever it can read of the states of before."""

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import continuarm as ca
from continuarm.cli import cli
from continuarm.errors import ContinuarmError, SettingsError, StoreError
from continuarm.ledger import SharedPolicy, share
from continuarm.ledger.purging import purge
from continuarm.ledger.replaying import replay
from continuarm.ledger.upgrading import Upgraded, upgrade
from continuarm.live import state
from continuarm.store import Store, open_store

AGE = ca.Box([18.0], [90.0], names=["age"])
PRICE = ca.Box([1.0], [9.0], names=["price"])
BEFORE = "0123456789abcdef"  # a version


def new(**options: object) -> ca.Policy:
    return ca.SurfaceSampling(AGE, PRICE, rng=1, **options)  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(tmp_path / "shop.db")) as opened:
        yield opened


def visit(shared: SharedPolicy, times: int) -> None:
    rng = np.random.default_rng(0)
    for k in range(times):
        decision = shared.ask([18.0 + 7.0 * k % 72.0])
        best = 0.05 * decision.context[0]
        shared.tell(decision, 3.0 - (decision.value[0] - best) ** 2 + 0.1 * rng.normal())


def wider(content: bytes) -> bytes:
    """A state whose rows have one more number, as another version's may."""
    closed, _, rest = content.partition(b"\n")
    header, arrays = state.parts_of(rest)
    arrays["rows"] = np.hstack([arrays["rows"], np.ones((len(arrays["rows"]), 1))])
    header["arrays"] = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
    data = b"".join(array.tobytes() for array in arrays.values())
    return b"\n".join([closed, json.dumps(header).encode(), data])


def of_another_version(where: Path, *, readable: bool) -> None:
    """Let a store be as one of another version, whose states this one can read or not."""
    with closing(sqlite3.connect(where)) as connection:
        kept = connection.execute("SELECT rowid, digest, state FROM snapshots").fetchall()
        for row, before, content in kept:
            anew = content if readable else wider(content)
            digest = hashlib.sha256(anew).hexdigest()
            connection.execute(
                "UPDATE snapshots SET version = ?, digest = ?, state = ? WHERE rowid = ?",
                (BEFORE, digest, anew, row),
            )
            connection.execute(
                'UPDATE events SET body = replace(replace(body, ?, ?), \'"version": "1"\', ?), '
                "checksum = NULL WHERE kind = 'began'",
                (before, digest, f'"version": "{BEFORE}"'),
            )
        connection.execute("UPDATE events SET checksum = NULL")
        connection.commit()


@pytest.mark.parametrize("readable", [True, False])
def test_the_whole_ledger_is_folded_anew(store: Store, tmp_path: Path, readable: bool) -> None:
    shared = share(new(share=0.2), store, "prices", every=20)
    visit(shared, 30)
    waiting = shared.ask([40.0])
    shared.pause()
    before = shared.policy().snapshot()
    of_another_version(tmp_path / "shop.db", readable=readable)
    with pytest.raises(StoreError, match=r"is of version 0123456789abcdef, but .* upgrade prices"):
        share(new(share=0.2), store, "prices")
    steps = list[int]()
    found = upgrade(store, "prices", progress=steps.append)
    head = store.experiment("prices").head - 1
    assert found == Upgraded(BEFORE, head, head - 1, from_export=False, left_out=0)
    assert sum(steps) == head - 1
    after = share(new(share=0.2), store, "prices")
    assert after.policy().snapshot() == before, "the code is the same"
    after.tell(waiting.id, 1.0)
    assert replay(store, "prices").difference is None


def test_a_state_that_had_learned_is_read_or_the_way_is_named(
    store: Store, tmp_path: Path
) -> None:
    policy = new()
    for k in range(20):
        policy.tell(policy.ask([20.0 + k]), 1.0)
    shared = share(policy, store, "prices")
    visit(shared, 5)
    before = shared.policy().snapshot()
    of_another_version(tmp_path / "shop.db", readable=True)
    upgrade(store, "prices")
    assert share(policy, store, "prices").policy().snapshot() == before
    of_another_version(tmp_path / "shop.db", readable=False)
    with pytest.raises(StoreError, match=r"can read none of its 2 snapshots: .* --export FILE"):
        upgrade(store, "prices")


def run(*arguments: str) -> str:
    done = CliRunner().invoke(cli, arguments, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.stdout


def test_where_a_purge_has_cut_the_ledger_an_export_is_the_beginning(
    store: Store, tmp_path: Path
) -> None:
    shared = share(new(), store, "prices", every=50)
    visit(shared, 150)
    waiting = shared.ask([30.0])
    visit(shared, 3)
    purge(store, "prices", store.experiment("prices").time + 60.0)
    visit(shared, 5)
    shared.pause()
    old, file, where = shared.policy(), tmp_path / "table.json", str(tmp_path / "shop.db")
    of_another_version(tmp_path / "shop.db", readable=False)
    head = store.experiment("prices").head
    with pytest.raises(StoreError, match=r"--export FILE"):
        run("upgrade", "prices", "--store", where)
    file.write_text("nonsense")
    with pytest.raises(SettingsError, match="a table written by `export`"):
        run("upgrade", "prices", "--export", str(file), "--store", where)
    file.write_text(ca.SurfaceSampling(AGE, AGE, rng=1).export())
    with pytest.raises(SettingsError, match="an export of this experiment has"):
        run("upgrade", "prices", "--export", str(file), "--store", where)
    assert store.experiment("prices").head == head, "nothing has changed"
    file.write_text(old.export())
    said = run("upgrade", "prices", "--export", str(file), "--store", where)
    assert "it begins with what the export recommends" in said
    after = SharedPolicy(store, "prices")
    assert after.policy().paused
    ages = np.linspace(20.0, 88.0, 9)[:, None]
    after.resume()
    near = np.abs(after.recommend_many(ages) - old.recommend_many(ages))
    assert near.max() < 0.5, "it goes on near what was known"
    after.tell(waiting.id, 1.0)
    visit(after, 3)
    assert replay(store, "prices").difference is None


def test_what_was_frozen_stays_frozen_under_another_number(store: Store, tmp_path: Path) -> None:
    shared = share(new(), store, "prices")
    visit(shared, 30)
    [first, *_] = shared.policy().bins()
    shared.freeze(first)
    assert shared.ask([30.0]).role == "best"
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:  # bins had other numbers
        connection.execute(
            "UPDATE events SET body = json_set(body, '$.bin', 7 + json_extract(body, '$.bin')), "
            "checksum = NULL WHERE kind IN ('asked', 'frozen') AND body NOT LIKE '%\"bin\":0%'"
        )
        connection.commit()
    of_another_version(tmp_path / "shop.db", readable=True)
    upgrade(store, "prices")
    after = SharedPolicy(store, "prices")
    assert [one.frozen for one in after.policy().bins()] == [True]
    assert after.ask([30.0]).role == "best"


@pytest.mark.parametrize("readable", [True, False])
def test_a_frozen_segment_stays_frozen(store: Store, tmp_path: Path, readable: bool) -> None:
    """Where a state cannot be read, it answers as the export recommends."""
    shared = share(new(), store, "prices", every=10)
    visit(shared, 60)
    shared.freeze({"age": (60, 90)})
    visit(shared, 30)
    table, best = shared.policy().export(), shared.recommend([75.0])
    if not readable:
        purge(store, "prices", before=1e12)
    of_another_version(tmp_path / "shop.db", readable=readable)
    upgrade(store, "prices", table=table)
    after = SharedPolicy(store, "prices")
    assert [one.where for one in after.policy().frozen] == [{"age": (60.0, 90.0)}]  # type: ignore[union-attr]
    decision = after.ask([75.0])
    assert decision.role == "best"
    assert decision.value == pytest.approx(best, abs=0.0 if readable else 0.6)


def test_decisions_that_the_code_would_not_make_again_are_refused_where_they_must_be(
    store: Store, tmp_path: Path
) -> None:
    static = ca.StaticKWSA(AGE, PRICE, bins=2, step=1.0, rng=1)
    shared = share(static, store, "prices")
    visit(shared, 10)
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute(
            "UPDATE events SET body = json_set(body, '$.value', json('[3.25]')), checksum = NULL "
            "WHERE position = 10"
        )
        connection.commit()
    of_another_version(tmp_path / "shop.db", readable=True)
    with pytest.raises(ContinuarmError, match=r"record 10 cannot happen .* `after` 'prices'"):
        upgrade(store, "prices")
