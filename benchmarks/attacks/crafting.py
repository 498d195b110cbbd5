"""Stores and exports in which something was changed, opened as a server opens them.

    python -m benchmarks.attacks.crafting FOLDER FIRST COUNT

Each seed is a line: the seed, what was changed, and what came of it. The same seed makes the same
change. The process may crash or hang; who has started it sees that.
"""

import json
import os
import random
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import continuarm as ca
from continuarm.errors import ContinuarmError
from continuarm.service.experiments import Experiments
from continuarm.store import open_store
from continuarm.store.moving import read_lines, written_lines

__all__ = ["base", "main"]

VICTIM, OTHER = "prices", "other"
EVENTS = 60  # decisions of each experiment
EVERY = 40
STARTED = 0.05  # of the stores are opened as a server does; it takes longer
ODD: tuple[Any, ...] = (
    None, "", "x", "\ud800", "0" * 32, "f" * 32, -1, 0, 1, 2**31, 2**53, 2**62, -(2**62), 1.5,
    float("nan"), float("inf"), 1e308, -1e308, 5e-324, [], {}, [1e308], True, b"\x00\xff",
)  # fmt: skip
NONSENSE = ("NaN", "Infinity", "1e308", "-1e999", "null", '"x"', "[]", "{}", "2e9", "true")
Random = random.Random


def policy() -> ca.Policy:
    """That of both experiments."""
    context = ca.Box([18, 0], [90, 250_000], names=["age", "income"])
    return ca.SurfaceSampling(context, ca.Box([1], [9], names=["price"]), ttl_seconds=7200, rng=0)


def base(path: Path) -> None:
    """Two experiments with snapshots, payoffs, keys, and what is open or forgotten."""
    rng = Random(0)
    for name in (VICTIM, OTHER):
        with closing(open_store(path)) as store:
            shared = ca.share(policy(), store, name, every=EVERY)
            for k in range(EVENTS):
                context = [rng.uniform(18, 90), rng.uniform(0, 250_000)]
                decision = shared.ask(context, key=f"{name}-{k}")
                if k % 10 == 3:
                    shared.forget(decision)
                elif k % 10 != 7:
                    shared.tell(decision, rng.random())
            shared.pause()
            shared.resume()
            shared.change(ttl_seconds=7000)
            shared.tell(shared.ask([20.0, 10.0]), 0.5)


def _edited(rng: Random, value: Any) -> Any:
    """Another value than this, near it or far from it."""
    way = rng.random()
    if isinstance(value, bytes) and value and way < 0.8:
        return _flipped(rng, value)
    if isinstance(value, str) and value and way < 0.6:
        if value[0] in "{[" and way < 0.45:
            return _edited_json(rng, value)
        return _flipped(rng, value.encode()).decode(errors="replace")
    if isinstance(value, int | float) and not isinstance(value, bool) and way < 0.4:
        return value + rng.choice((-1, 1, 2, -1000, 0.5, 1e6, -1e9))
    return rng.choice(ODD)


def _flipped(rng: Random, value: bytes) -> bytes:
    found = bytearray(value)
    way = rng.random()
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
    if way < 0.1:
        return bytes(found[: rng.randrange(len(found))])
    return bytes(found * 2) if way < 0.15 else bytes(found)


def _edited_json(rng: Random, text: str) -> str:
    """A number or word somewhere in it becomes another, or a field is gone."""
    plain = json.loads(text)
    value: Any = plain
    while isinstance(value, dict | list) and value:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = rng.choice(keys)
        if not isinstance(value[key], dict | list) or not value[key] or rng.random() < 0.2:
            if rng.random() < 0.2:
                del value[key]
            else:
                value[key] = "@@"
            break
        value = value[key]
    return json.dumps(plain).replace('"@@"', rng.choice(NONSENSE))


def _in_sql(path: Path, rng: Random, table: str, columns: tuple[str, ...], where: str) -> str:
    """Change a field of a row, or let a row be gone or twice."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        there = {row[1] for row in other.execute(f"PRAGMA table_info({table})")}
        column = rng.choice([name for name in columns if name in there])
        keys = "position" if table != "experiments" else "number"
        found = [row[0] for row in other.execute(f"SELECT {keys} FROM {table} WHERE {where}")]
        at = rng.choice(found)
        which = f"{where} AND {keys} = {at}"
        if table != "experiments" and rng.random() < 0.05:
            other.execute(f"DELETE FROM {table} WHERE {which}")
            return f"{table} without row {at}"
        [(before,)] = other.execute(f"SELECT {column} FROM {table} WHERE {which}")
        after = _edited(rng, before)
        if isinstance(after, list | dict):
            after = json.dumps(after)
        if isinstance(after, str):
            after = after.encode("utf-8", "replace").decode()
        for _ in range(2):
            try:
                other.execute(f"UPDATE {table} SET {column} = ? WHERE {which}", (after,))
                break
            except (sqlite3.IntegrityError, OverflowError):
                after = rng.choice((0, 1, 7, -3, "x"))
        else:
            return f"{table}.{column} as it was"
        if after == before:
            return f"{table}.{column} as it was"
        return f"{table}.{column} of row {at}: {before!r:.60} became {after!r:.60}"


def events(path: Path, rng: Random) -> str:
    """A record of the ledger."""
    columns = ("body", "body", "body", "kind", "opens", "closes", "client_key", "time",
               "position", "checksum")  # fmt: skip
    return _in_sql(path, rng, "events", columns, "experiment = 1")


def snapshots(path: Path, rng: Random) -> str:
    """A snapshot."""
    columns = ("state", "state", "state", "digest", "version", "position", "time")
    return _in_sql(path, rng, "snapshots", columns, "experiment = 1")


def experiments(path: Path, rng: Random) -> str:
    """What is said of an experiment."""
    columns = ("settings", "settings", "head", "begins", "time", "archived", "clock_offset")
    return _in_sql(path, rng, "experiments", columns, "number = 1")


def file_bytes(path: Path, rng: Random) -> str:
    """Bytes of the file."""
    content = bytearray(path.read_bytes())
    places = [rng.randrange(len(content)) for _ in range(rng.choice((1, 1, 2, 8)))]
    for at in places:
        content[at] ^= 1 << rng.randrange(8)
    path.write_bytes(content)
    return f"bytes {places} of the file"


STORED: tuple[tuple[Callable[[Path, Random], str], bool], ...] = (
    *[(events, True)] * 4, *[(snapshots, True)] * 3, (experiments, True), (file_bytes, False),
)  # fmt: skip


def stored(path: Path, rng: Random) -> tuple[str, str]:
    """A changed store: the server starts, the other experiment decides, this one as it can."""
    change, others_decide = rng.choice(STORED)
    what = change(path, rng)
    try:
        store = open_store(path)
    except ContinuarmError as error:
        return what, "refused" if not others_decide else f"no start: {_line(error)}"
    with closing(store):
        try:
            if rng.random() < STARTED:
                _start(path)
        except Exception as error:
            if others_decide or not isinstance(error, ContinuarmError):
                return what, f"no start: {_line(error)}"
        try:
            _use(ca.share(policy(), store, OTHER))
        except Exception as error:
            if others_decide or not isinstance(error, ContinuarmError):
                return what, f"others suffer: {_line(error)}"
        return what, _used(lambda: ca.share(policy(), store, VICTIM))


def _start(path: Path) -> None:
    """Open all experiments, as a server does when it starts, and close them as it does."""
    with closing(Experiments(open_store(path))) as opened:
        opened.open_all()


def exported(path: Path, rng: Random) -> tuple[str, str]:
    """A changed export: refused, or an experiment that works."""
    with closing(open_store(path)) as store:
        lines = list(written_lines(store, VICTIM))
    at, way = rng.randrange(len(lines)), rng.random()
    before = lines[at]
    if way < 0.1:
        del lines[at]
    elif way < 0.2:
        lines.insert(at, lines[rng.randrange(len(lines))])
    elif way < 0.7:
        lines[at] = _edited_export(rng, before)
    else:
        lines[at] = _flipped(rng, before.encode()).decode(errors="surrogateescape")
    what = f"line {at + 1} of an export: {before[:60]} became {lines[at : at + 1]!r:.200}"
    with closing(open_store(":memory:")) as target:
        try:
            read_lines(target, lines)
        except ContinuarmError:
            return what, "refused"
        except Exception as error:
            return what, f"raw exception: {_line(error)}"
        return what, _used(lambda: ca.share(policy(), target, VICTIM))


def _edited_export(rng: Random, line: str) -> str:
    plain = json.loads(line)
    body = plain.get("event", {}).get("body")
    if body is not None and rng.random() < 0.6:
        plain["event"]["body"] = _edited_json(rng, body)
        return json.dumps(plain)
    return _edited_json(rng, line)


def _used(opened: Callable[[], ca.SharedPolicy]) -> str:
    try:
        _use(opened())
    except ContinuarmError as error:
        return "refused" if "\n" not in str(error) else f"no line: {_line(error)}"
    except Exception as error:
        return f"raw exception: {_line(error)}"
    return "works"


def _use(shared: ca.SharedPolicy) -> None:
    """Decide, tell, and look."""
    decision = shared.ask([40.0, 1000.0])
    assert 1.0 <= float(decision.value[0]) <= 9.0, decision
    shared.tell(decision, 1.0)
    shared.recommend([40.0, 1000.0])


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300].replace("\n", " ")


def tried(folder: Path, seed: int) -> tuple[str, str]:
    """What was changed by a seed, and what came of it."""
    rng, path = Random(seed), folder / f"crafted-{os.getpid()}.db"
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    shutil.copyfile(folder / "base.db", path)
    return exported(path, rng) if rng.random() < 0.15 else stored(path, rng)


def main(folder: str, first: str, count: str) -> None:
    """Try so many seeds."""
    for seed in range(int(first), int(first) + int(count)):
        print(json.dumps([seed, "", "begun"]), flush=True)
        try:
            what, outcome = tried(Path(folder), seed)
        except Exception as error:
            what, outcome = "", f"raw exception: {_line(error)}"
        print(json.dumps([seed, what, outcome]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
