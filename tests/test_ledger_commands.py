"""Commands on ledgers: what a store has, moved, folded again, taken over, erased."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import continuarm as ca
from continuarm.cli import cli
from continuarm.errors import ContinuarmError
from continuarm.ledger import SharedPolicy, share
from continuarm.store import Store, open_store

AGE = ca.Box([18.0], [90.0], names=["age"])
PRICE = ca.Box([1.0], [9.0], names=["price"])
KINDS = ["sqlite", "postgresql"]


@pytest.fixture(params=KINDS)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "shop.db")
    found: str = request.getfixturevalue("server").fresh(f"cli-{request.node.name[:50]}")
    return found


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    with closing(open_store(address)) as opened:
        yield opened


def run(*arguments: str, given: str | None = None) -> str:
    """What a command prints; what it refuses is raised."""
    done: Result = CliRunner().invoke(cli, arguments, input=given, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.stdout


def refused(*arguments: str, given: str | None = None) -> str:
    with pytest.raises(ContinuarmError) as caught:
        run(*arguments, given=given)
    return str(caught.value)


def new(**options: object) -> ca.Policy:
    return ca.SurfaceSampling(AGE, PRICE, rng=1, **options)  # type: ignore[arg-type]


def visit(shared: SharedPolicy, times: int, *, every: int = 1) -> list[ca.Decision]:
    """Customers whose best price rises with their age; of so many, one pays nothing yet."""
    waiting = []
    for k in range(times):
        decision = shared.ask([18.0 + 7.0 * k % 72.0])
        if every > 1 and k % every == 0:
            waiting.append(decision)
        else:
            shared.tell(decision, 3.0 - (decision.value[0] - 0.05 * decision.context[0]) ** 2)
    return waiting


def test_an_experiment_moves_to_another_store_by_a_file(
    address: str, store: Store, tmp_path: Path
) -> None:
    shared, lines, other = share(new(), store, "prices"), tmp_path / "a", str(tmp_path / "b.db")
    [waiting, *_] = visit(shared, 10, every=5)
    run("export", "prices", "--to", str(lines), "--store", address)
    assert run("import", str(lines), "--as", "prices-b", "--store", other) == (
        f"prices-b: {store.experiment('prices').head} events\n"
    )
    with closing(open_store(other)) as moved:
        assert moved.read("prices-b", 0) == store.read("prices", 0)
        assert moved.snapshots("prices-b") == store.snapshots("prices")
        there = share(new(), moved, "prices-b")
        assert there.policy().snapshot() == shared.policy().snapshot()
        there.tell(waiting.id, 1.5)
        visit(there, 3)
    piped = run("export", "prices", "--store", address)
    assert piped == lines.read_text()
    assert "prices-c" in run("import", "-", "--as", "prices-c", "--store", other, given=piped)
    listed = run("experiments", "--store", other)
    assert [line.split()[0] for line in listed.splitlines()] == [
        "experiment",
        "prices-b",
        "prices-c",
    ]


def test_what_cannot_be_moved_is_one_line_and_changes_nothing(tmp_path: Path) -> None:
    where, lines, odd = str(tmp_path / "shop.db"), tmp_path / "lines", tmp_path / "odd"
    with closing(open_store(where)) as store:
        share(new(), store, "prices")
    assert "must be created first" in refused("export", "typo", "--to", str(odd), "--store", where)
    assert not odd.exists()
    run("export", "prices", "--to", str(lines), "--store", where)
    assert "a file that can be made" in refused(
        "export", "prices", "--to", str(lines), "--store", where
    )
    assert "a name that is free" in refused("import", str(lines), "--store", where)
    assert "can be read" in refused("import", str(odd), "--store", where)
    first, *rest = lines.read_bytes().splitlines(keepends=True)
    for content in (b"{}\n", b"\xff\n", first, first + rest[0] + b"\xff\n"):
        odd.write_bytes(content)
        assert refused("import", str(odd), "--as", "odd", "--store", where)
    assert [json.loads(first)["name"]] == [
        line.split()[0] for line in run("experiments", "--store", where).splitlines()[1:]
    ]


@pytest.mark.parametrize(
    "command",
    [
        ["experiments"],
        ["export", "prices"],
        ["token", "list"],
        ["token", "revoke", "shop"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("kind", ["no file", "an empty file", "an empty database"])
def test_a_command_that_looks_makes_no_store(
    command: list[str], kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    where = str(tmp_path / "typo.db")
    if kind == "an empty file":
        Path(where).touch()
    if kind == "an empty database":
        where = request.getfixturevalue("server").fresh(f"empty-{'-'.join(command)}")
    assert "a store must be there" in refused(*command, "--store", where)
    left = {"an empty file": [0]}.get(kind, [])
    assert [path.stat().st_size for path in tmp_path.glob("typo*")] == left
    assert "a store must be there" in refused(*command, "--store", where), "it made one"
