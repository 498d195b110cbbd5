"""The primary of PostgreSQL is lost, and a stale copy takes its place and its address."""

import shutil
import signal
from functools import partial

from benchmarks.attacks.ledger import check, replayed, rows
from benchmarks.attacks.place import Place
from benchmarks.attacks.restores import Lives, lost_is_unknown
from benchmarks.attacks.result import Case, Defect, Tally
from benchmarks.attacks.servers import several
from benchmarks.attacks.shop import Shop
from tests import postgresql

__all__ = ["CASES"]

GOES_ON = 60.0  # seconds until servers decide again after a failover


def failovers(place: Place, tally: Tally, *, running: bool) -> None:
    """Lose the primary, again and again, under servers that run on or are started anew."""
    with postgresql.Server() as database:
        address, log = database.fresh("shop"), place.log(f"failovers {running}")
        lives, errors = Lives(log), place.folder / "failovers.stderr"
        with several(2, address, errors) as servers:
            ports = [server.port for server in servers]
            for _ in range(place.often(8, 1)):
                with Shop(ports, log, tally) as shop:
                    shop.until_more(60)
                    before = lives.mark()
                    copied(database)
                    shop.until_more(30)
                    servers[0].end()  # what decides after the copy is another process, too
                    servers[0].start()
                    shop.until_more(30)
                    servers[0].ready()
                lives.again(tally)
                if not running:
                    for server in servers:
                        server.end()
                promoted(database)
                there = {i for (i,) in rows(address, "SELECT opens FROM events") if i is not None}
                lost = lives.lose(before, there)
                for server in servers:
                    if not running:
                        server.start()
                        server.ready()
                    lost_is_unknown(server.port, lost, tally)
                with Shop(ports, log, tally) as shop:
                    shop.until_more(20, GOES_ON)
                tally.times += 1
                lives.again(tally)
                check(address, "prices", lives.mark(), tally)
        replayed(address, "prices")
    tally.came = f"{len(lives.gone):,} given up, none came again"


def copied(database: postgresql.Server) -> None:
    """Take a base backup, as a standby begins with."""
    shutil.rmtree(database.folder / "copy", ignore_errors=True)
    address = database.address
    try:
        database._run("pg_basebackup", "-D", str(database.folder / "copy"), "-d", address,
                      "--checkpoint=fast")  # fmt: skip
    except AssertionError as error:
        raise Defect(f"a base backup must be made: {error}") from None


def promoted(database: postgresql.Server) -> None:
    """Kill the primary, and start the copy on its address."""
    database.stop(signal.SIGQUIT)
    shutil.rmtree(database.data)
    (database.folder / "copy").rename(database.data)
    database.start()


CASES = [
    Case("failovers", "a stale copy in place, servers started anew",
         partial(failovers, running=False), False),
    Case("failovers", "a stale copy in place, servers run on", partial(failovers, running=True)),
]  # fmt: skip
