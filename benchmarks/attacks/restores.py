"""Back up, go on, restore, go on: what was lost stays unknown, and no number comes again."""

import random
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

from benchmarks.attacks.acknowledged import Acknowledged, Asked, Log, acknowledged
from benchmarks.attacks.ledger import check, command, replayed, rows
from benchmarks.attacks.place import Place
from benchmarks.attacks.result import Case, Defect, Tally
from benchmarks.attacks.servers import Server, created, request
from benchmarks.attacks.shop import Shop

__all__ = ["CASES", "Lives", "lost_is_unknown"]

HERE = "/v1/experiments/prices"
AWAY = 30.0  # seconds that a server may need to find its store again
TOLD_LATE = 20  # payoffs of lost decisions that are told, of each restore


class Lives:
    """All that was acknowledged, of which restores have lost some."""

    def __init__(self, log: Log) -> None:
        self.log, self.gone = log, dict[str, Asked]()
        self._first = 0
        self._kept = Acknowledged({}, {})

    def mark(self) -> Acknowledged:
        """What is acknowledged by now, of that which was not lost."""
        now = acknowledged(self.log.path, "prices", self._first)
        return Acknowledged(self._kept.asked | now.asked, self._kept.told | now.told)

    def lose(self, sure: Acknowledged, there: set[str]) -> dict[str, Asked]:
        """What was acknowledged and is not there; what was there at a backup must be."""
        all_ = self.mark()
        missing = [id_ for id_ in sure.asked if id_ not in there]
        if missing:
            raise Defect(f"a backup lacks {len(missing)} of before it, such as {missing[0]}")
        lost = {id_: one for id_, one in all_.asked.items() if id_ not in there}
        self.gone |= lost
        self._kept = Acknowledged(
            {id_: one for id_, one in all_.asked.items() if id_ in there}, sure.told
        )
        self._first = len(self.log.path.read_text().splitlines())
        return lost

    def again(self, tally: Tally) -> None:
        """A number that was lost must not have come again."""
        twice = sorted(set(self.gone) & set(self.mark().asked))
        tally.wrong += len(twice)
        if twice:
            raise Defect(f"{len(twice)} numbers of lost decisions came again, such as {twice[0]}")


def lost_is_unknown(port: int, lost: dict[str, Asked], tally: Tally) -> None:
    """The payoff of a lost decision is refused as unknown."""
    end = time.monotonic() + AWAY
    for id_ in random.sample(sorted(lost), min(TOLD_LATE, len(lost))):
        told = {"id": id_, "payoff": 9.0}
        status, answer = request(port, "POST", f"{HERE}/payoffs", told)
        while status == 503 and time.monotonic() < end:
            time.sleep(0.1)
            status, answer = request(port, "POST", f"{HERE}/payoffs", told)
        if status != 404:
            tally.wrong += 1
            raise Defect(f"the payoff of a lost decision was answered {status}: {answer}")


def restores(place: Place, tally: Tally, *, store: str, way: str) -> None:
    """Restore a backup of under load, again and again."""
    address, log = place.fresh(store), place.log(f"restores {store} {way}")
    lives, errors = Lives(log), place.folder / "restores.stderr"
    copy = place.stores / f"copy-{place.folder.name}-{way}-{store}"
    server = Server(address, errors)
    try:
        created(server.ready())
        for _ in range(place.often(10, 1)):
            with Shop([server.port], log, tally) as shop:
                shop.until_more(60)
                before = lives.mark()
                restore = WAYS[way](place, address, copy)
                shop.until_more(30)
                server.end()  # what decides after the backup is another process
                server.start()
                shop.until_more(30)
            lives.again(tally)
            server.end()
            restore()
            server.start()
            lost = lives.lose(before, _there(address))
            lost_is_unknown(server.ready().port, lost, tally)
            tally.times += 1
        with Shop([server.port], log, tally) as shop:
            shop.until_more(60)
    finally:
        server.end()
    lives.again(tally)
    check(address, "prices", lives.mark(), tally)
    replayed(address, "prices")
    tally.came = f"{len(lives.gone):,} given up, none came again"


def _there(address: str) -> set[str]:
    return {id_ for (id_,) in rows(address, "SELECT opens FROM events WHERE opens IS NOT NULL")}


Restore = Callable[[], None]


def sqlite_backup(place: Place, address: str, copy: Path) -> Restore:
    """By SQLite's own backup."""
    copy.unlink(missing_ok=True)
    with closing(sqlite3.connect(address)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)

    def restore() -> None:
        for suffix in ("", "-wal", "-shm"):
            Path(address + suffix).unlink(missing_ok=True)
        copy.rename(address)

    return restore


def dump(place: Place, address: str, copy: Path) -> Restore:
    """By `pg_dump`."""
    tools = place.database.bin
    with copy.open("wb") as file:
        subprocess.run([tools / "pg_dump", "-Fc", address], stdout=file, check=True)

    def restore() -> None:
        clean = [str(tools / "pg_restore"), "--clean", "--if-exists", "-d", address, str(copy)]
        subprocess.run(clean, check=True, capture_output=True)

    return restore


def exported(place: Place, address: str, copy: Path) -> Restore:
    """By `export`, and `import` into an empty store."""
    copy.unlink(missing_ok=True)
    command("export", "prices", "--to", str(copy), "--store", address)

    def restore() -> None:
        for suffix in ("", "-wal", "-shm"):
            Path(address + suffix).unlink(missing_ok=True)
        command("import", str(copy), "--store", address)

    return restore


WAYS = {"its own backup": sqlite_backup, "pg_dump": dump, "export and import": exported}


def log_deleted(place: Place, tally: Tally) -> None:
    """Delete the write-ahead log under a server: what it acknowledges afterwards is there."""
    address, log = place.fresh("SQLite"), place.log("restores wal")
    server = Server(address, place.folder / "restores.stderr")
    try:
        created(server.ready())
        for _ in range(place.often(20, 2)):
            with Shop([server.port], log, tally) as shop:
                shop.until_more(20)
            with closing(sqlite3.connect(address)) as other:  # so that nothing is only in it
                other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            Path(address + "-wal").unlink()
            with Shop([server.port], log, tally, timeout=2.0) as shop:
                shop.rest(1.0)
            tally.times += 1
            server.end()
            check(address, "prices", acknowledged(log.path, "prices"), tally)
            server.start()
            server.ready()
    finally:
        server.end()
    replayed(address, "prices")
    refused = tally.statuses[503]
    tally.came = f"refused ({refused:,} times 503) or kept"


CASES = [
    Case(
        "restores",
        f"{store}, {way}",
        partial(restores, store=store, way=way),
        way == "its own backup",
    )
    for store, way in zip(("SQLite", "PostgreSQL", "SQLite"), WAYS, strict=True)
]
CASES.append(Case("restores", "SQLite, `-wal` deleted under a server", log_deleted))
