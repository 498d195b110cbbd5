"""`kill -9` of servers under load, again and again."""

import random
import signal
from functools import partial

from benchmarks.attacks.acknowledged import acknowledged
from benchmarks.attacks.ledger import check, replayed
from benchmarks.attacks.place import STORES, Place
from benchmarks.attacks.result import Case, Tally
from benchmarks.attacks.servers import Server, several
from benchmarks.attacks.shop import Shop, until

__all__ = ["CASES"]

QUICK = (("SQLite", 1), ("PostgreSQL", 3))
OFTEN = 0.9  # of the servers have answered by then; the others are killed as they start
LONGEST = 0.2  # seconds between an answer and the kill


def kills(place: Place, tally: Tally, *, store: str, count: int) -> None:
    """Kill one server after the other while a shop goes on."""
    address, log = place.fresh(store), place.log(f"kills {store} {count}")
    wanted, errors = place.often(250, 3), place.folder / "kills.stderr"
    with (
        several(count, address, errors) as servers,
        Shop([server.port for server in servers], log, tally) as shop,
        place.progress(f"kills, {store}, {count}", wanted) as move,
    ):
        for _ in range(wanted):
            killed = random.choice(servers)
            _kill(killed, [one for one in servers if one is not killed], shop)
            tally.times += 1
            move(1)
        for server in servers:
            server.ready()
        shop.until_more()
    check(address, shop.name, acknowledged(log.path, shop.name), tally)
    replayed(address, shop.name)
    tally.came = "all is there"


def _kill(server: Server, others: list[Server], shop: Shop) -> None:
    """Let the shop go on for a while, kill the server, and start it again.

    One of the others is up by then; alone it has answered, or is killed as it starts.
    """
    if others:
        until(lambda: any(one.says("/readyz")[0] == 200 for one in others), "another server is up")
        shop.until_more(1)
    elif random.random() < OFTEN:
        server.ready("/healthz")
        shop.until_more(1)
    shop.rest(random.uniform(0.0, LONGEST))
    server.end(signal.SIGKILL)
    server.start()


CASES = [
    Case("kills", f"{store}, {count} server{'s' * (count > 1)}, under load",
         partial(kills, store=store, count=count), (store, count) in QUICK)
    for store in STORES
    for count in (1, 3)
]  # fmt: skip
