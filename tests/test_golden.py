"""What versions of before have written is folded, read and taken over by every commit."""

import gzip
import json
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest

import continuarm as ca
from continuarm.errors import SavedFileError
from continuarm.ledger import SharedPolicy
from continuarm.ledger.difference import between_states
from continuarm.ledger.refold import Refold
from continuarm.ledger.replaying import replay
from continuarm.ledger.snapshots import life_of, snapshot_of
from continuarm.ledger.upgrading import upgrade
from continuarm.ledger.version import FOLD_VERSION
from continuarm.live import events
from continuarm.store import Store, open_store
from continuarm.store.moving import read_lines
from tests.golden.make import HERE

NEAR = 1e-9  # as near as processors and versions are
OWN = f"fold-{FOLD_VERSION}"
FOLDERS = sorted(path.name for path in HERE.iterdir() if (path / "life.txt.gz").exists())
SAME = [folder for folder in FOLDERS if folder == OWN or (folder, FOLD_VERSION) == ("425fb8f", 1)]
LEDGERS = ("plain", "guarded", "static", "adaptive", "arms", "purged", "upgraded", "successor")
LATER = ("segments",)  # ledgers that the oldest folders lack
POLICIES = ("plain", "guarded", "static")
WAY = (
    "if this is meant, raise FOLD_VERSION and make the golden files anew with "
    "`python -m tests.golden.make`"
)
KINDS = set(
    "began asked told forgotten expired time-passed paused resumed frozen unfrozen "
    "options-changed learned-from-log reference-renewed".split()
)


def ledgers(folder: str) -> list[str]:
    there = [name for name in LATER if (HERE / folder / f"{name}.jsonl.gz").exists()]
    return [*LEDGERS, *there]


def content(folder: str, file: str) -> bytes:
    return gzip.decompress((HERE / folder / file).read_bytes())


def adopted(store: Store, folder: str, name: str) -> Store:
    read_lines(store, content(folder, f"{name}.jsonl.gz").decode().splitlines())
    return store


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    where = str(tmp_path / "shop.db")
    if request.param == "postgresql":
        where = request.getfixturevalue("server").fresh(tmp_path.name)
    with closing(open_store(where)) as opened:
        yield opened


def folded(store: Store, name: str) -> bytes:
    """The state that a whole ledger comes to by this code."""
    anew = Refold(store, name)
    return snapshot_of(anew.life, anew.fold_news()).state


def test_there_are_golden_files_of_this_version_with_every_kind_of_event() -> None:
    assert OWN in FOLDERS, f"golden files of version {FOLD_VERSION} are needed: {WAY}"
    for folder in FOLDERS:
        kinds = set[str]()
        for name in ledgers(folder):
            lines = content(folder, f"{name}.jsonl.gz").decode().splitlines()
            kinds |= {json.loads(line).get("event", {}).get("kind") for line in lines}
        later = {"clock-set", "segment-frozen", "segment-unfrozen"}
        assert kinds >= KINDS | (later if folder != "425fb8f" else set()), folder


@pytest.mark.parametrize("folder", SAME)
def test_a_golden_ledger_is_folded_to_its_state(folder: str, store: Store) -> None:
    """To the same bits within this build, and nearly to those of another one."""
    with closing(open_store(":memory:")) as other:
        for name in ledgers(folder):
            found = folded(adopted(store, folder, name), name)
            assert found == folded(adopted(other, folder, name), name), "within one build"
            head = store.experiment(name).head
            [kept] = [s for s in store.snapshots(name) if s.position == head]
            difference = between_states(found, snapshot_of(life_of(kept), head).state)
            assert difference.relative <= NEAR, f"{name} differs by {difference}: {WAY}"


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_golden_ledger_is_taken_over_and_goes_on(folder: str, store: Store) -> None:
    for name in ledgers(folder):
        adopted(store, folder, name)
        asked, told = counted(store, name)
        found = upgrade(store, name)
        assert (found is None) == (folder == OWN)
        shared = SharedPolicy(store, name)
        before = shared.policy().stats()
        if name != "purged":
            assert (before.asked, before.told) == (asked, told)
        shared.tell(shared.ask([30.0]), 1.0)
        again = replay(store, name)
        assert again.difference is None
        assert again.rounding.relative <= NEAR


def counted(store: Store, name: str) -> tuple[int, int]:
    """Decisions and payoffs in a ledger."""
    kinds = [record.kind for record in store.read(name, 0)]
    return kinds.count("asked"), kinds.count("told")


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_golden_store_opens_and_goes_on(folder: str, tmp_path: Path) -> None:
    where = tmp_path / "shop.db"
    where.write_bytes(content(folder, "shop.db.gz"))
    with closing(open_store(where)) as store:
        for experiment in store.experiments():
            upgrade(store, experiment.name)
            shared = SharedPolicy(store, experiment.name)
            shared.tell(shared.ask([30.0]), 1.0)
            assert replay(store, experiment.name).difference is None


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("name", POLICIES)
def test_a_golden_policy_is_loaded_or_refused_in_one_line(
    folder: str, name: str, tmp_path: Path
) -> None:
    saved = tmp_path / "saved"
    saved.write_bytes(content(folder, f"{name}.policy.gz"))
    if folder not in SAME:  # its state may be of another form
        with suppress(SavedFileError):
            ca.load(saved)
        return
    policy = ca.load(saved)
    said = json.loads(content(folder, f"{name}.export.json.gz"))
    answers = policy.recommend_many(said["contexts"])
    np.testing.assert_allclose(answers, said["answers"], rtol=NEAR)
    policy.tell(policy.ask([30.0]), 1.0)


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("name", POLICIES)
def test_a_golden_export_is_read(folder: str, name: str) -> None:
    said = json.loads(content(folder, f"{name}.export.json.gz"))
    reader = ca.Reader(said["export"])
    assert [reader.decide(point) for point in said["contexts"]] == said["answers"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_golden_events_are_read_and_lead_to_their_state(folder: str) -> None:
    first, *lines, last = content(folder, "life.txt.gz").decode().splitlines()
    happened = [events.from_plain(json.loads(line)) for line in lines]
    if folder in SAME:
        policy = ca.Policy.from_snapshot(bytes.fromhex(first))
        for event in happened:
            policy.apply(event)
        own, kept = (b"{}\n" + state for state in (policy.snapshot(), bytes.fromhex(last)))
        assert between_states(own, kept).relative <= NEAR, WAY
