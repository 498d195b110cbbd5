"""`continuarm check`: a whole store is found whole, and any damage is said in one line."""

import random
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner, Result

from continuarm.cli import cli
from continuarm.ledger import share
from continuarm.ledger.purging import purge
from continuarm.store import open_store
from tests import postgresql
from tests.test_ledger_commands import new, visit

FLIPS, EDITS = 60, 60


def checked(where: str | Path, *options: str) -> Result:
    """What is said of a store; nothing but that may come of it."""
    command = ["check", "--store", str(where), *options]
    found = CliRunner().invoke(cli, command, standalone_mode=False)
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exc_info
    assert found.exit_code in (0, 1)
    lines = found.output.splitlines()
    assert all(": " in line or line.startswith("and ") for line in lines), lines
    return found


def filled(where: str) -> None:
    with closing(open_store(where)) as store:
        visit(share(new(), store, "prices", every=10), 15, every=4)
        other = share(new(ttl_seconds=1e6), store, "others", every=10)
        visit(other, 15)
        other.pause()
        purge(store, "others", store.read("others", 11, 1)[0].time)
        visit(other, 3)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("checked") / "shop.db"
    filled(str(path))
    return path


@pytest.fixture
def path(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(whole, tmp_path / "shop.db"))


def edited(path: Path, statement: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(statement)
        connection.commit()
        return found.rowcount


@pytest.mark.parametrize("options", [(), ("--replay",)])
def test_a_whole_store_is_whole(path: Path, options: tuple[str, ...]) -> None:
    found = checked(path, *options)
    assert found.exit_code == 0, found.output
    assert [line.split(":")[0] for line in found.output.splitlines()] == ["others", "prices"]
    assert "27 events and 3 snapshots are whole" in found.output


BAD = "experiment = (SELECT number FROM experiments WHERE name = 'prices')"
DAMAGE = {
    "a byte of a body": (
        f"UPDATE events SET body = ' ' || body WHERE position = 9 AND {BAD}",
        "record 9: .*is damaged",
    ),
    "a payoff, its checksum gone": (
        "UPDATE events SET checksum = NULL, body = json_set(body, '$.payoff', 1e300) "
        f"WHERE {BAD} AND position = 8",
        "record 8: .*a checksum must have one",
    ),
    "another payoff, its checksum gone": (
        "UPDATE events SET checksum = NULL, body = json_set(body, '$.payoff', 2.5) "
        f"WHERE {BAD} AND position = 8",
        "record 8: .*a checksum must have one",
    ),
    "a record": (f"DELETE FROM events WHERE position = 9 AND {BAD}", "record 9: .*gone"),
    "the last record": (
        f"DELETE FROM events WHERE {BAD} AND position = (SELECT head FROM experiments "
        "WHERE name = 'prices')",
        "it must be the last one",
    ),
    "a payoff of an earlier version": (
        "UPDATE events SET checksum = NULL, body = CASE WHEN position = 8 "
        f"THEN json_set(body, '$.payoff', 1e300) ELSE body END WHERE {BAD}",
        "record 8: the payoff must be within",
    ),
    "another payoff of an earlier version": (
        "UPDATE events SET checksum = NULL, body = CASE WHEN position = 8 "
        f"THEN json_set(body, '$.payoff', 2.5) ELSE body END WHERE {BAD}",
        "position 10: the state",
    ),
    "a time": (
        "UPDATE events SET checksum = NULL, "
        f"time = CASE WHEN position = 9 THEN time - 1e6 ELSE time END WHERE {BAD}",
        "record 9: its time must be from",
    ),
    "a digest": (f"UPDATE snapshots SET digest = 'x' WHERE {BAD}", "snapshot at 1: .*damaged"),
    "no version": (f"UPDATE snapshots SET version = '0' WHERE {BAD}", "snapshot at 1: its vers"),
    "a newer one": (f"UPDATE snapshots SET version = '7' WHERE {BAD}", "at 1: it is of version 7"),
    "a state": (f"UPDATE snapshots SET state = x'00' WHERE {BAD}", "snapshot at 1: .*damaged"),
    "the beginning": (f"DELETE FROM snapshots WHERE position = 1 AND {BAD}", "beginning is gone"),
    "a type": ("UPDATE experiments SET head = 'x' WHERE name = 'prices'", "damaged"),
    "an experiment": ("DELETE FROM experiments WHERE name = 'prices'", "must belong to"),
    "a settings' type": ("UPDATE experiments SET settings = x'ff' WHERE name = 'prices'", "dam"),
    "a clock": (
        "UPDATE experiments SET clock_offset = 1e7 WHERE name = 'prices'",
        "prices: the clock: clock_offset must be what the ledger says, 0.0, but is 10000000.0",
    ),
    "whether it is archived": (
        "UPDATE experiments SET archived = 7 WHERE name = 'prices'",
        "the store: archived must be 0 or 1, but that of the experiment 'prices' is 7",
    ),
    "a name": (
        "UPDATE experiments SET name = 'pri/ces' WHERE name = 'prices'",
        "the store: the name of an experiment must be without /",
    ),
    "a token": (
        "INSERT INTO tokens (name, scope, hashed, created) VALUES ('shop', 'god', 'x', 0)",
        r"the store: the scope of a token must be one of .* but that of 'shop' is 'god'",
    ),
    "settings": (
        "UPDATE experiments SET settings = '{' WHERE name = 'prices'",
        "prices: its settings: they must be an object of JSON",
    ),
    "bytes that are no text": (
        f"UPDATE events SET body = CAST(x'ff' AS TEXT) WHERE position = 9 AND {BAD}",
        "record 9: .*decode",
    ),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_said(what: str, path: Path) -> None:
    statement, rule = DAMAGE[what]
    assert edited(path, statement) > 0
    found = checked(path)
    assert found.exit_code == 1
    defects = [line for line in found.output.splitlines() if "are whole" not in line]
    assert len(defects) <= 5, found.output
    assert re.search(rule, found.output), found.output
    if what != "an experiment":
        assert re.search("others: [0-9]+ events and [0-9]+ snapshots are whole", found.output)


def test_any_byte_may_flip(whole: Path, tmp_path: Path) -> None:
    rng, content, said = random.Random(1), whole.read_bytes(), 0
    for number in range(FLIPS):
        damaged = bytearray(content)
        for _ in range(rng.choice((1, 1, 20))):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        (path := tmp_path / f"{number}.db").write_bytes(damaged)
        said += checked(path).exit_code
    assert said > FLIPS / 2, "most of a file is used"


COLUMNS = {
    "events": ("position", "time", "kind", "body", "opens", "closes", "client_key", "checksum"),
    "snapshots": ("position", "version", "digest", "state"),
    "experiments": ("settings", "begins", "head", "time"),
}
VALUES = ("'x'", "''", "x'00ff'", "-1", "0", "7.5", "1e308", "9e999", "4611686018427387904")


def test_any_row_may_be_edited(whole: Path, tmp_path: Path) -> None:
    """What differs afterwards is said, whatever it is."""
    rng = random.Random(2)
    for number in range(EDITS):
        path = Path(shutil.copy(whole, tmp_path / f"{number}.db"))
        table = rng.choice(list(COLUMNS))
        column, value = rng.choice(COLUMNS[table]), rng.choice(VALUES)
        with closing(sqlite3.connect(path)) as connection:
            key = "name" if table == "experiments" else "experiment, position"
            rows = connection.execute(f"SELECT {key} FROM {table}").fetchall()
            row = rng.choice(rows)
            where = " AND ".join(f"{name.strip()} = ?" for name in key.split(","))
            one = f"{table} WHERE {where}"
            before = connection.execute(f"SELECT {column} FROM {one}", row).fetchall()
            try:
                connection.execute(f"UPDATE {table} SET {column} = {value} WHERE {where}", row)
            except sqlite3.IntegrityError:
                continue
            after = connection.execute(f"SELECT {column} FROM {one}", row).fetchall()
            connection.commit()
        found = checked(path)
        assert found.exit_code == 1 or before == after, (table, column, value, row, found.output)


def test_a_store_in_postgresql_is_checked(server: postgresql.Server) -> None:
    where = server.fresh("checked")
    filled(where)
    assert checked(where).exit_code == 0
    with psycopg.connect(where) as theirs:
        theirs.execute("UPDATE events SET body = body || ' ' WHERE position = 15")
        theirs.execute("UPDATE snapshots SET digest = 'x' WHERE position = 20")
    found = checked(where)
    assert found.exit_code == 1
    for name in ("others", "prices"):
        assert f"{name}: record 15: a record must be as it was written" in found.output
        assert f"{name}: the snapshot at 20: it must be as it was kept" in found.output


def test_a_store_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database, and longer than a header would be" * 100)
    for name in ("text", "nothing"):
        found = checked(tmp_path / name)
        assert found.exit_code == 1
        assert found.output.startswith("the store: a store must be")
    assert not (tmp_path / "nothing").exists()
    (tmp_path / "empty").touch()
    assert "empty is an empty file" in checked(tmp_path / "empty").output


def test_a_malformed_file_says_what_to_do(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for page in range(1, len(content) // 4096):  # but for the first, which names the tables
        content[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    path.write_bytes(content)
    assert re.search("malformed: restore a backup|is damaged, .*: restore a backup",
                     checked(path).output)  # fmt: skip
