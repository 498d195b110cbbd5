"""Makes golden files: `python -m tests.golden.make`, when the fold version was raised.

They are written by this version, into a folder of its own; those of versions before stay. A ledger
ends with a snapshot of the state that it folds to.
"""

import gzip
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import continuarm as ca
from continuarm.ledger import SharedPolicy, share, version
from continuarm.ledger.entries import CLOCK_SET
from continuarm.ledger.purging import purge
from continuarm.ledger.replica import Replica
from continuarm.ledger.upgrading import upgrade
from continuarm.live import events
from continuarm.store import Entry, Store, open_store
from continuarm.store.moving import written_lines

HERE = Path(__file__).parent
EVERY = 80  # events between two snapshots
AGE = ca.Box([18.0], [90.0], names=["age"])
PRICE = ca.Box([1.0], [9.0], names=["price"])
SIZES = ca.Polytope(
    ca.Box([1.0, 1.0], [9.0, 9.0], names=["small", "large"], spacing=0.05),
    ["small <= large - 0.5"],
)
ASKED = np.linspace(0.03, 0.97, 11)  # where an export is read, on the unit cube


class Shop:
    """Customers who pay most for what fits them, and of whom some say nothing."""

    def __init__(self, seed: int) -> None:
        self.rng, self.waiting = np.random.default_rng(seed), list[ca.Decision]()

    def payoff(self, decision: ca.Decision) -> float:
        best = 2.0 + 0.05 * float(decision.context[0])
        lost = float(((decision.value - best) ** 2).sum())
        return 3.0 - 0.3 * lost + 0.3 * float(self.rng.normal())

    def visit(self, shared: SharedPolicy, times: int, silent: int = 5, **options: Any) -> None:
        """So many customers; one in `silent` says nothing yet."""
        for k in range(times):
            context = shared.context.from_unit(self.rng.random(shared.context.dim))
            key = f"visit {self.rng.integers(2**40)}" if k % 3 == 0 else None
            decision = shared.ask(context, key=key, **options)
            if k % silent == 0:
                self.waiting.append(decision)
            else:
                shared.tell(decision, self.payoff(decision))


def plain(store: Store) -> None:
    """Long enough for bins to split."""
    shop, shared = Shop(1), share(ca.SurfaceSampling(AGE, PRICE, rng=1), store, "plain", every=600)
    shop.visit(shared, 450, silent=40)
    for decision in shop.waiting[:5]:
        shared.forget(decision)


def guarded(store: Store) -> None:
    """Every option, and every verb."""
    policy = ca.SurfaceSampling(
        AGE,
        SIZES,
        start=[2.0, 4.0],
        share=0.2,
        ttl=25,
        ttl_seconds=0.5,
        missing=0.0,
        max_move=2.0,
        rng=2,
    )
    shop, shared = Shop(2), share(policy, store, "guarded", every=150)
    log = {"age": shop.rng.uniform(20.0, 80.0, 40), "small": np.full(40, 2.0)}
    log |= {"large": np.linspace(3.0, 6.0, 40), "payoff": 1.0 + 0.1 * shop.rng.normal(size=40)}
    shared.learn_from(log)
    shop.visit(shared, 30)
    shop.visit(shared, 10, within={"small": (1.5, 3.0), "large": (3.0, 6.0)})
    shared.tell(shared.ask([30.0]), 1.5, value=[1.5, 4.0])
    shared.pause()
    shop.visit(shared, 5)
    shared.resume()
    shared.renew_reference()
    [first, *_] = shared.policy().bins()
    shared.freeze(first)
    shop.visit(shared, 5)
    shared.unfreeze(first)
    shared.change(share=0.1, ttl=30, max_move=3.0)
    shop.visit(shared, 20)
    shared.forget(shared.ask([40.0]))
    clock = {"offset": 0.25, "clock": time.time(), "earlier": []}
    store.set_clock("guarded", Entry(CLOCK_SET, json.dumps(clock)), 0.25)
    shop.visit(shared, 5)
    time.sleep(0.7)  # what is open is over its time
    shared.expire()
    shop.visit(shared, 20)


def segments(store: Store) -> None:
    """Segments that overlap, frozen and unfrozen, near references of different times."""
    policy = ca.SurfaceSampling(AGE, PRICE, share=0.2, max_move=2.0, rng=3)
    shop, shared = Shop(6), share(policy, store, "segments", every=60)
    shop.visit(shared, 60)
    shared.freeze({"age": (60, 90)})
    shop.visit(shared, 40)
    shared.renew_reference()
    shared.freeze({"age": (50, 70)})
    shared.freeze({"age": (18, 20)})
    shop.visit(shared, 40)
    shared.unfreeze({"age": (60, 90)})
    shop.visit(shared, 40)


def stencils(store: Store) -> None:
    """Policies whose `ask` changes the state."""
    made = {
        "static": ca.StaticKWSA(AGE, PRICE, bins=3, step=1.0, rng=3, ttl=9),
        "adaptive": ca.AdaptiveKWSA(AGE, PRICE, horizon=1000, step=1.0, rng=3, ttl=9),
        "arms": ca.UniformUCB(AGE, PRICE, bins=2, arms=3, rng=3, ttl=9),
    }
    for name, policy in made.items():
        shop, shared = Shop(3), share(policy, store, name, every=EVERY)
        shop.visit(shared, 60, silent=7)
        shared.forget(shop.waiting[-1])


def purged(store: Store) -> None:
    """What was before is erased, but for one that is open."""
    shop, shared = (
        Shop(4),
        share(ca.SurfaceSampling(AGE, PRICE, rng=4), store, "purged", every=EVERY),
    )
    shop.visit(shared, 40, silent=20)
    time.sleep(0.05)
    before = time.time()
    time.sleep(0.05)
    shop.visit(shared, 40, silent=20)
    purge(store, "purged", before)
    shop.visit(shared, 20)


def upgraded(store: Store) -> None:
    """Begun by another version, and taken over."""
    shop = Shop(5)
    with another_version():
        shared = share(ca.SurfaceSampling(AGE, PRICE, rng=5), store, "upgraded", every=EVERY)
        shop.visit(shared, 40)
    upgrade(store, "upgraded")
    shop.visit(share(ca.SurfaceSampling(AGE, PRICE, rng=5), store, "upgraded", every=EVERY), 40)


def successor(store: Store) -> None:
    """One that has learned the ledger of another."""
    wider = ca.SurfaceSampling(AGE, ca.Box([0.5], [12.0], names=["price"]), rng=6)
    Shop(6).visit(share(wider, store, "successor", after="purged", every=EVERY), 40)


@contextmanager
def another_version() -> Iterator[None]:
    own = version.FOLD_VERSION
    version.FOLD_VERSION = own - 1  # type: ignore[misc]
    try:
        yield
    finally:
        version.FOLD_VERSION = own  # type: ignore[misc]


def write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(plain, 9, mtime=0))


def write_ledger(store: Store, name: str, folder: Path) -> None:
    """The lines of an experiment, with its last state as a snapshot."""
    replica = Replica(store, name, every=10**9)
    replica.catch_up()
    store.keep(name, replica.snapshot())
    write(folder / f"{name}.jsonl.gz", "\n".join(written_lines(store, name)) + "\n")


def write_policy(store: Store, name: str, folder: Path) -> None:
    """A policy that was saved, its export, and what that recommends."""
    policy = SharedPolicy(store, name).policy()
    with tempfile.TemporaryDirectory() as place:
        policy.save(Path(place, "saved"))
        write(folder / f"{name}.policy.gz", Path(place, "saved").read_bytes())
    contexts = policy.context.from_unit(np.repeat(ASKED[:, None], policy.context.dim, axis=1))
    answers = [ca.Reader(policy.export()).decide(point) for point in contexts.tolist()]
    said = {"export": policy.export(), "contexts": contexts.tolist(), "answers": answers}
    write(folder / f"{name}.export.json.gz", json.dumps(said))


def write_life(folder: Path) -> None:
    """A policy in one process: its first state, its events, and its last state."""
    policy = ca.SurfaceSampling(AGE, PRICE, rng=7, ttl_seconds=5.0, missing=0.0)
    lines = [policy.snapshot().hex()]
    policy.listen(lambda event: lines.append(json.dumps(events.to_plain(event))))
    for k in range(30):
        decision = policy.ask([20.0 + k], now=float(k))
        if k % 3:
            policy.tell(decision, 3.0 - float((decision.value[0] - 4.0) ** 2))
    policy.expire(now=40.0)
    policy.ask([30.0], now=41.0)
    policy.forget_all()
    lines.append(policy.snapshot().hex())
    write(folder / "life.txt.gz", "\n".join(lines) + "\n")


def make(folder: Path) -> None:
    """All golden files of this version."""
    with tempfile.TemporaryDirectory() as place:
        where = Path(place, "shop.db")
        with closing(open_store(where)) as store:
            purged(store)
            stencils(store)
        write(folder / "shop.db.gz", where.read_bytes())
        with closing(open_store(where)) as store:
            for scenario in (plain, guarded, segments, upgraded, successor):
                scenario(store)
            for experiment in store.experiments():
                write_ledger(store, experiment.name, folder)
            for name in ("plain", "guarded", "static"):
                write_policy(store, name, folder)
    write_life(folder)


if __name__ == "__main__":
    make(Path(*sys.argv[1:]) if sys.argv[1:] else HERE / f"fold-{version.FOLD_VERSION}")
