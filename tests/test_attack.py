"""The attack: its checker finds what is lost or wrong, and some of its rows, which must hold."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import continuarm as ca
from benchmarks.attack import attacked, cases
from benchmarks.attacks.acknowledged import Acknowledged, Asked, Log, acknowledged
from benchmarks.attacks.ledger import check
from benchmarks.attacks.place import Place
from benchmarks.attacks.result import Case, Defect, Tally
from continuarm.store import open_store
from tests import postgresql

NAME = "prices"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Acknowledged]:
    """A ledger of a few decisions, and what was acknowledged of them."""
    folder = tmp_path_factory.mktemp("ledger")
    path, log = folder / "shop.db", Log(folder / "log")
    policy = ca.SurfaceSampling(ca.Box([0.0], [1.0]), ca.Box([1.0], [9.0]), rng=0)
    with closing(open_store(path)) as store:
        shared = ca.share(policy, store, NAME)
        for k in range(4):
            decision = shared.ask([0.5], key=f"order-{k}")
            id_ = f"{decision.id:032x}"
            log.asked(NAME, [Asked(id_, f"order-{k}", decision.value.tolist())])
            shared.tell(decision, float(k))
            log.told(NAME, {id_: float(k)})
    return path, acknowledged(log.path, NAME)


def test_the_checker_finds_nothing_where_nothing_is_wrong(
    base: tuple[Path, Acknowledged],
) -> None:
    path, known = base
    assert (len(known.asked), len(known.told)) == (4, 4)
    assert check(str(path), NAME, known, Tally()) == 9


LAST = "(SELECT max(position) FROM events)"


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (f"DELETE FROM events WHERE position = {LAST}; UPDATE experiments SET head = head - 1",
         "1 of 8 acknowledged are lost"),
        ("DELETE FROM events WHERE position = 4", "position 5 follows position 3"),
        ("UPDATE experiments SET head = head + 1", "the ledger ends at 9"),
        ("UPDATE events SET time = time + 1 WHERE position = 3", "time goes back at 4"),
        ("UPDATE events SET body = replace(body, '2.0', '3.0') WHERE position = 7",
         "1 are others than acknowledged"),
        ("UPDATE events SET body = replace(body, '\"value\":[', '\"value\":[1') "
         "WHERE position = 2", "1 are others than acknowledged"),
        ("UPDATE events SET client_key = 'other' WHERE position = 2", "are others"),
        ("UPDATE events SET kind = 'forgotten' WHERE position = 3", "are others"),
        ("DROP INDEX events_closes; UPDATE events SET closes = (SELECT closes FROM events "
         "WHERE position = 3) WHERE position = 5", "is told at 3 and 5"),
        ("DROP INDEX events_keys; UPDATE events SET client_key = 'order-0' WHERE position = 4",
         "has the key 'order-0' again"),
        ("UPDATE events SET closes = 'another' WHERE position = 3", "closes another, never asked"),
        ("DELETE FROM experiments", "has 0 experiments"),
    ],
)  # fmt: skip
def test_the_checker_finds_what_is_lost_or_wrong(
    base: tuple[Path, Acknowledged], tmp_path: Path, statement: str, said: str
) -> None:
    path, known = base
    copy = tmp_path / "copy.db"
    copy.write_bytes(path.read_bytes())
    with closing(sqlite3.connect(copy)) as other:
        other.executescript(statement)
    with pytest.raises(Defect, match=said):
        check(str(copy), NAME, known, Tally())


def test_an_answer_that_has_two_meanings_is_a_defect(tmp_path: Path) -> None:
    for k, two in enumerate(
        [
            (Asked("1", "a", [1.0]), Asked("1", "b", [1.0])),
            (Asked("1", "a", [1.0]), Asked("1", "a", [2.0])),
            (Asked("1", "a", [1.0]), Asked("2", "a", [1.0])),
        ]
    ):
        log = Log(tmp_path / str(k))
        log.asked(NAME, list(two))
        with pytest.raises(Defect, match="was answered as"):
            acknowledged(log.path, NAME)


def test_a_row_with_a_defect_says_so(tmp_path: Path) -> None:
    def run(place: Place, tally: Tally) -> None:
        tally.times = 3
        raise Defect("it is lost")

    with Place(tmp_path, quick=True) as place:
        found = attacked(place, Case("kills", "what", run))
    assert found["defect"] == "it is lost"
    assert found["row"][:3] == ["kills", "what", 3]
    assert found["row"][-1] == "**defect**"


@pytest.mark.parametrize(
    "what",
    [
        "SQLite, 1 server, under load",
        "PostgreSQL, 3 servers, under load",
        "PostgreSQL, the database crashes",
        "a stale copy in place, servers run on",
    ],
)
def test_rows_of_the_attack_hold(what: str, tmp_path: Path, server: postgresql.Server) -> None:
    [case] = [one for one in cases(["kills", "outages", "failovers"]) if one.what == what]
    with Place(tmp_path, quick=True, database=server) as place:
        found = attacked(place, case)
    assert found["defect"] is None, found
    assert found["row"][2] > 0
