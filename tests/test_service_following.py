"""Many experiments of one server: they share its threads, and each follows its ledger."""

import threading
from contextlib import closing
from pathlib import Path

from continuarm.ledger import SharedPolicy
from continuarm.store import open_store
from tests.service import CUSTOMER, PRICES, served, until

COUNT = 20


def test_experiments_share_their_threads_and_each_follows_its_ledger(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with (
        closing(open_store(path)) as store,
        closing(open_store(path)) as elsewhere,
        served(store) as client,
    ):
        names = [f"/v1/experiments/prices-{k}" for k in range(COUNT)]
        for name in names:
            assert client.put(name, json=PRICES).status_code == 201
            assert client.post(f"{name}/decisions", json={"context": CUSTOMER}).status_code == 200
        kinds = [thread.name.split("_")[0] for thread in threading.enumerate()]
        assert kinds.count("follow") == 1
        assert kinds.count("write") <= 8
        assert not any(name.startswith("prices") for name in kinds)
        for k in range(COUNT):
            SharedPolicy(elsewhere, f"prices-{k}").ask(CUSTOMER)
        for name in names:
            until(lambda name=name: client.get(name).json()["counts"]["decisions"] == 2)
        assert client.delete(names[0]).status_code == 200
        SharedPolicy(elsewhere, "prices-1").ask(CUSTOMER)
        until(lambda: client.get(names[1]).json()["counts"]["decisions"] == 3)
