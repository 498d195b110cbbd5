"""A clock that was wrong for a moment: ages and dates go on, times never go back."""

import datetime
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

import continuarm as ca
from continuarm.cli import cli
from continuarm.errors import ExpiredDecisionError, StoreError
from continuarm.ledger.clock import ahead, dates, set_clock
from continuarm.ledger.entries import CLOCK_SET, offset_of
from continuarm.ledger.purging import purge
from continuarm.ledger.replaying import replay
from continuarm.store import Record, Store, open_store
from tests.service import HERE, PRICES, served, until

AGE, PRICE = ca.Box([18.0], [90.0], names=["age"]), ca.Box([1.0], [9.0], names=["price"])
YEAR, TTL = 365 * 86400.0, 600.0
START = datetime.datetime(2026, 5, 1, tzinfo=datetime.UTC).timestamp()


class Clock:
    """A clock of a store that can be wrong."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = START
        place = "continuarm.store.sqlite.SqliteDatabase.clock"
        monkeypatch.setattr(place, staticmethod(lambda session: lambda: self.now))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[Store]:
    with closing(open_store(tmp_path / "shop.db")) as opened:
        yield opened


def shop(store: Store) -> ca.SharedPolicy:
    policy = ca.SurfaceSampling(AGE, PRICE, ttl_seconds=TTL, ttl=None)
    return ca.share(policy, store, "prices", every=4)


def wrong_for_a_moment(shared: ca.SharedPolicy, clock: Clock) -> None:
    """A year ahead for one decision, then right."""
    clock.now += YEAR
    shared.tell(shared.ask([30]), 1.0)
    clock.now -= YEAR


def test_ages_go_on_after_a_clock_was_wrong(store: Store, clock: Clock) -> None:
    shared = shop(store)
    wrong_for_a_moment(shared, clock)
    lost = shared.ask([40])
    clock.now += 2 * TTL
    assert shared.expire() == 0, "time stands still: this is what is mended below"
    assert ahead(store.experiment("prices"), store.clock()) == pytest.approx(YEAR - 2 * TTL)

    assert set_clock(store, "prices") == pytest.approx(YEAR - 2 * TTL)
    clock.now += 0.5 * TTL
    late = shared.ask([50])
    assert shared.expire() == 0, "what was asked in the future was asked when the clock was set"
    clock.now += 0.6 * TTL
    shared.tell(shared.ask([60]), 1.0)
    shared.tell(shared.ask([60]), 1.0)  # whose group has what the one before has made due
    with pytest.raises(ExpiredDecisionError):
        shared.tell(lost, 1.0)
    shared.tell(late, 1.0)
    times = [record.time for record in store.read("prices", 0)]
    assert times == sorted(times)
    assert times[-1] == pytest.approx(START + YEAR + 1.1 * TTL)
    assert replay(store, "prices").difference is None
    assert ahead(store.experiment("prices"), store.clock()) == 0.0
    again = ca.share(ca.SurfaceSampling(AGE, PRICE, ttl_seconds=TTL, ttl=None), store, "prices")
    assert again.policy().snapshot() == shared.policy().snapshot()


def test_a_clock_can_be_set_again_and_dates_stay_right(store: Store, clock: Clock) -> None:
    shared, asked = shop(store), list[float]()
    for _ in range(2):
        wrong_for_a_moment(shared, clock)
        set_clock(store, "prices")
        for _ in range(2):
            clock.now += 86400.0
            asked.append(clock.now)
            shared.tell(shared.ask([30]), 1.0)
    date = dates(store, "prices")
    records = store.read("prices", 0)
    found = [date(record) for record in records]
    assert found == sorted(found)
    assert [found[k] for k in (5, 7, 12, 14)] == pytest.approx(asked)
    purge(store, "prices", before=asked[2] - 1.0)
    first = store.read("prices", 0)[0]
    assert dates(store, "prices")(first) >= asked[2] - 1.0
    purge(store, "prices", before=asked[3] - 1.0)
    left = [dates(store, "prices")(record) for record in store.read("prices", 0)]
    assert left == sorted(left)
    assert left[0] == pytest.approx(asked[3])


def test_the_command_says_it_and_sets_it(store: Store, clock: Clock, tmp_path: Path) -> None:
    command = ["clock", "prices", "--store", str(tmp_path / "shop.db")]
    shared = shop(store)
    right = CliRunner().invoke(cli, command)
    assert "2026-05-01 00:00:00 UTC, is not behind" in right.output
    wrong_for_a_moment(shared, clock)
    wrong = CliRunner().invoke(cli, command)
    assert (
        "2027-05-01 00:00:00 UTC, is 31,536,000 s ahead of the clock, 2026-05-01" in wrong.output
    )
    assert "--set" in wrong.output
    done = CliRunner().invoke(cli, [*command, "--set"])
    assert "ages are counted from 2026-05-01 00:00:00 UTC on" in done.output
    assert "is not behind" in CliRunner().invoke(cli, command).output
    again = CliRunner().invoke(cli, [*command, "--set"]).output
    assert again.endswith("is not behind the newest event; nothing was written\n")
    shown = CliRunner().invoke(cli, ["experiments", "--store", str(tmp_path / "shop.db")])
    assert "2026-05-01 00:00:00 UTC" in shown.output


@pytest.mark.parametrize(
    "body", ["{}", '{"offset": -1}', '{"offset": "x"}', "[]", '{"offset": 1e999}']
)
def test_a_setting_that_is_none_is_refused(body: str) -> None:
    with pytest.raises(StoreError, match="a clock is set by a number of seconds"):
        offset_of(Record(3, 0.0, CLOCK_SET, body))


def test_a_server_raises_an_alarm_until_the_clock_is_set(store: Store, clock: Clock) -> None:
    asked = {"context": {"age": 37, "income": 52000}}
    with served(store, log=lambda line: None) as client:

        def alarms() -> str:
            return " ".join(client.get("/readyz").json()["alarms"])

        assert client.put(HERE, json=PRICES).status_code == 201
        assert client.post(f"{HERE}/decisions", json=asked).status_code == 200
        assert alarms() == ""
        assert client.get(HERE).json()["health"] == "good"
        clock.now += YEAR
        until(lambda: "has jumped by +31,53" in alarms())
        assert client.post(f"{HERE}/decisions", json=asked).status_code == 200
        clock.now -= YEAR
        until(lambda: "'prices': its time is 31,53" in alarms())
        assert "jumped by -31,53" in alarms()
        assert client.get(HERE).json()["health"] == "serious"
        assert "continuarm clock prices --set" in client.get(f"{HERE}/diagnosis").json()["text"]
        assert 'clock_ahead_seconds{experiment="prices"} 3.15' in client.get("/metrics").text
        assert client.get("/readyz").status_code == 200
        assert client.post(f"{HERE}/decisions", json=asked).status_code == 200
        set_clock(store, "prices")
        until(lambda: "'prices'" not in alarms())
        assert client.get(HERE).json()["health"] == "good"
        assert 'clock_ahead_seconds{experiment="prices"} 0\n' in client.get("/metrics").text
