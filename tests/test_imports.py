"""Imports: a file that a ledger could not hold is refused, with its line, and leaves nothing."""

import json
import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from continuarm.ledger import share
from continuarm.store import open_store
from tests.test_ledger_commands import new, refused, run, visit

Change = Callable[[dict[str, Any]], dict[str, Any]]

WRONG = {
    "NaN as a payoff": ("told", '"payoff":', '"payoff":NaN,"p":', "payoff must be|hold events"),
    "a payoff of 1e308": ("told", '"payoff":', '"payoff":1e308,"p":', "payoff must be within"),
    "an endless payoff": ("told", '"payoff":', '"payoff":1e999,"p":', "payoff must|hold events"),
    "a text as a payoff": ("told", '"payoff":', '"payoff":"1","p":', "payoff must be"),
    "a context outside": ("asked", '"context":[', '"context":[1e6],"c":[', "18.0 <= age"),
    "a text as a context": ("asked", '"context":[', '"context":["a"],"c":[', "hold events"),
    "a decision outside": ("asked", '"value":[', '"value":[-5.0],"v":[', "must|box"),
    "two decisions": ("asked", '"value":[', '"value":[2.0,3.0],"v":[', "1 numbers"),
    "a role of nobody": ("asked", '"role":"', '"role":"nobody","r":"', "explored"),
    "a bin of nobody": ("asked", '"bin":', '"bin":-1,"b":', "bin"),
}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    where = str(tmp_path_factory.mktemp("exported") / "shop.db")
    with closing(open_store(where)) as store:
        visit(share(new(), store, "prices", every=8), 12)
    return run("export", "prices", "--store", where).splitlines()


def last_of(lines: list[str], kind: str) -> int:
    return max(k for k, line in enumerate(lines) if f'"kind": "{kind}"' in line)


def bare(lines: list[str]) -> list[str]:
    """Without checksums, as an earlier version wrote them."""
    plain = [json.loads(line) for line in lines]
    return [json.dumps({k: v for k, v in one.items() if k != "checksum"}) for one in plain]


def imported(lines: list[str], tmp_path: Path) -> str:
    """Why lines are refused, all of them; nothing of them is left."""
    file, where = tmp_path / "lines", tmp_path / "shop.db"
    file.write_text("\n".join(lines))
    said = refused("import", str(file), "--store", str(where))
    assert not where.exists()
    assert "\n" not in said
    return said


@pytest.mark.parametrize("what", WRONG)
def test_an_import_refuses_what_a_ledger_could_not_hold(
    what: str, exported: list[str], tmp_path: Path
) -> None:
    kind, text, other, rule = WRONG[what]
    at = last_of(exported, kind)
    plain = json.loads(exported[at])
    body = plain["event"]["body"].replace(text, other, 1)
    assert body != plain["event"]["body"]
    plain["event"]["body"] = body
    edited = [*exported[:at], json.dumps(plain), *exported[at + 1 :]]
    assert re.match(f"line {at + 1}: .* checksum .* does not fit", imported(edited, tmp_path))
    said = imported(bare([*exported[:at], json.dumps(plain), *exported[at + 1 :]]), tmp_path)
    assert re.match(rf"line {at + 1}: .*({rule})", said), said


def test_an_import_says_which_line_is_no_line_of_a_ledger(
    exported: list[str], tmp_path: Path
) -> None:
    told, asked = last_of(exported, "told"), last_of(exported, "asked")
    state = next(k for k, line in enumerate(exported) if '"snapshot"' in line)
    events: list[tuple[int, Change, str]] = [
        (told, lambda event: event | {"closes": "nobody's"}, "32 hexadecimal digits"),
        (told, lambda event: event | {"closes": "0" * 32}, "opened before it is closed"),
        (told, lambda event: event | {"closes": None}, "must open or close"),
        (told, lambda event: event | {"kind": "sold"}, "must open or close"),
        (told, lambda event: event | {"time": event["time"] - 1e6}, "must follow"),
        (asked, lambda event: event | {"key": 5}, "must be as it was exported"),
    ]
    for at, change, rule in events:
        event = change(json.loads(exported[at])["event"])
        lines = [*exported[:at], json.dumps({"event": event}), *exported[at + 1 :]]
        assert re.match(f"line {at + 1}: .*{rule}", imported(bare(lines), tmp_path))
        assert "with and without a checksum" in imported(lines, tmp_path)
    snapshots: list[tuple[Change, str]] = [
        (lambda kept: kept | {"digest": "0" * 64}, "does not fit"),
        (lambda kept: kept | {"state": kept["state"][:-1]}, "must be as it was exported"),
        (lambda kept: kept | {"position": 10**6}, "a position from 1 to"),
    ]
    for change, rule in snapshots:
        kept = change(json.loads(exported[state])["snapshot"])
        lines = [*exported[:state], json.dumps({"snapshot": kept}), *exported[state + 1 :]]
        assert re.match(f"line {state + 1}: .*{rule}", imported(lines, tmp_path))
    twice = [*exported[: state + 1], exported[state], *exported[state + 1 :]]
    assert re.match(f"line {state + 2}: .*kept once", imported(twice, tmp_path))
    deep = [*exported[:told], "[" * 100_000, *exported[told + 1 :]]
    assert re.match(f"line {told + 1}: ", imported(deep, tmp_path))
    for line in (exported[told], exported[asked]):
        again = imported([*exported, line], tmp_path)
        assert re.match(f"line {len(exported) + 1}: .*once", again), again
