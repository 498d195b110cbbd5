"""An experiment that cannot be served is quarantined, and no other suffers."""

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import httpx
import pytest

import continuarm as ca
from continuarm.ledger import share
from continuarm.service import experiments
from continuarm.store import open_store
from tests.service import until
from tests.serving import served

GOOD, BAD = "/v1/experiments/good", "/v1/experiments/bad"
CONTEXT = {"context": [30.0]}


def new() -> ca.Policy:
    return ca.SurfaceSampling(ca.Box([18.0], [90.0]), ca.Box([1.0], [9.0]), rng=1)


@pytest.fixture
def where(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with closing(open_store(path)) as store:
        for name in ("good", "bad"):
            shared = share(new(), store, name)
            shared.tell(shared.ask([20.0]), 1.0)
    with closing(sqlite3.connect(path)) as connection:  # as an earlier version wrote it
        connection.execute(
            "UPDATE events SET checksum = NULL, body = json_remove(body, '$.state') WHERE "
            "experiment = (SELECT number FROM experiments WHERE name = 'bad')"
        )
        connection.commit()
    return path


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiments, "AGAIN", 0.2)
    monkeypatch.setattr(experiments, "SELDOM", 0.2)


def edit(where: Path, statement: str) -> None:
    number = "(SELECT number FROM experiments WHERE name = 'bad')"
    with closing(sqlite3.connect(where)) as connection:
        assert connection.execute(statement.format(bad=number)).rowcount == 1
        connection.commit()


# what was done to a store, and what undoes it
EDITS = {
    "a snapshot": (
        "UPDATE snapshots SET digest = '0' || digest WHERE experiment = {bad}",
        "UPDATE snapshots SET digest = substr(digest, 2) WHERE experiment = {bad}",
    ),
    "the beginning": (
        "UPDATE events SET body = 'nonsense', checksum = NULL WHERE experiment = {bad} "
        "AND kind = 'began'",
        "UPDATE events SET body = (SELECT json_object('position', position, 'version', version, "
        "'digest', digest, 'since', 1) FROM snapshots WHERE experiment = {bad}) "
        "WHERE experiment = {bad} AND kind = 'began'",
    ),
    "an event": (
        "UPDATE events SET body = '[]', checksum = NULL WHERE experiment = {bad} AND position = 3",
        'UPDATE events SET body = \'{{"payoff":1.0,"gradient":null,"value":null}}\' '
        "WHERE experiment = {bad} AND position = 3",
    ),
    "settings": (
        "UPDATE experiments SET settings = '[' || settings WHERE number = {bad}",
        "UPDATE experiments SET settings = substr(settings, 2) WHERE number = {bad}",
    ),
}


def check_quarantined(client: httpx.Client) -> str:
    """One is; the reason is one line wherever it is said; the other one is served."""
    answer = client.post(f"{BAD}/decisions", json=CONTEXT)
    assert (answer.status_code, answer.json()["error"]) == (503, "unavailable")
    reason: str = answer.json()["message"]
    assert reason.startswith("'bad' cannot be served now: ")
    assert "\n" not in reason
    assert client.post(f"{GOOD}/decisions", json=CONTEXT).status_code == 200
    ready = client.get("/readyz")
    assert (ready.status_code, list(ready.json()["quarantined"])) == (200, ["bad"])
    assert "has the reason" in ready.json()["quarantined"]["bad"], "nothing of the store is quoted"
    assert 'continuarm_quarantined{experiment="bad"} 1' in client.get("/metrics").text
    listed = client.get("/v1/experiments").json()
    assert [one["name"] for one in listed["experiments"]] == ["good"]
    assert listed["unavailable"] == [{"name": "bad", "error": "unavailable", "message": reason}]
    return reason


@pytest.mark.parametrize("what", EDITS)
def test_one_that_cannot_be_opened_is_quarantined_until_it_can(
    what: str, where: Path, caplog: pytest.LogCaptureFixture
) -> None:
    damage, repair = EDITS[what]
    edit(where, damage)
    with served(open_store(where)) as client:
        check_quarantined(client)
        if what != "settings":  # the traceback is for who looks after it, and said once
            assert len([r for r in caplog.records if r.levelno == logging.ERROR]) == 1
        edit(where, repair)
        until(lambda: client.post(f"{BAD}/decisions", json=CONTEXT).status_code == 200)
        assert client.get("/readyz").json()["quarantined"] == {}


# tables, and what is set there for one experiment
BROKEN = [
    ("experiments", "head = 'much'"),
    ("experiments", "head = 99"),
    ("experiments", "begins = 99"),
    ("experiments", "time = 'noon'"),
    ("experiments", "archived = 'perhaps'"),
    ("events", "kind = 'nonsense'"),
    ("events", "opens = 'nobody'"),
    ("events", "closes = 'nobody'"),
    ("events", "time = 'noon'"),
    ("events", "position = 7"),
    ("snapshots", "version = 'another'"),
    ("snapshots", "position = 2"),
    ("snapshots", "state = x''"),
    ("snapshots", "state = x'00ff'"),
]


def test_no_edit_of_one_experiment_ends_the_start_of_others(where: Path) -> None:
    """A single edit each; the other experiment is served whatever became of the edited one."""
    content = where.read_bytes()
    for table, change in BROKEN:
        where.write_bytes(content)
        number = "number" if table == "experiments" else "experiment"
        last = " AND position = 3" if table == "events" else ""
        edit(where, f"UPDATE {table} SET {change} WHERE {number} = {{bad}}{last}")
        with served(open_store(where)) as client:
            answer = client.post(f"{GOOD}/decisions", json=CONTEXT)
            assert answer.status_code == 200, change
            answer = client.post(f"{BAD}/decisions", json=CONTEXT)
            assert answer.status_code in (200, 404, 409, 503), (change, answer.text)


@pytest.mark.parametrize("checksum", ["NULL", "0"])
def test_one_that_meets_a_broken_record_is_quarantined_while_it_runs(
    checksum: str, where: Path
) -> None:
    with served(open_store(where)) as client, closing(open_store(where)) as store:
        assert client.post(f"{BAD}/decisions", json=CONTEXT).status_code == 200
        with closing(sqlite3.connect(where)) as connection:
            connection.execute(  # as another process would, whose disk breaks it
                "INSERT INTO events (experiment, position, time, kind, body, checksum) SELECT "
                f"number, head + 1, time, 'told', '[]', {checksum} FROM experiments "
                "WHERE name = 'bad'"
            )
            connection.execute("UPDATE experiments SET head = head + 1 WHERE name = 'bad'")
            connection.commit()
        until(lambda: client.get("/readyz").json()["quarantined"])
        position = store.experiment("bad").head - 1
        assert f"cannot be after position {position}" in check_quarantined(client)


def test_a_server_that_can_serve_none_of_its_experiments_is_not_ready(where: Path) -> None:
    edit(where, EDITS["a snapshot"][0])
    with closing(open_store(where)) as store:
        store.archive("good")
    with served(open_store(where)) as client:
        assert client.get("/readyz").status_code == 503
        with closing(open_store(where)) as store:
            store.archive("bad")
        until(lambda: client.get("/readyz").status_code == 200)
