"""Tables of smooth surfaces: a reader in plain Python decides as the policy recommends."""

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import continuarm as ca
from continuarm.core.compiling import Array
from continuarm.core.learners import smooth_surface as ss
from continuarm.core.learners.smooth import layout
from continuarm.core.state import HEAD
from continuarm.ledger import SharedPolicy, share
from continuarm.ledger.purging import purge
from continuarm.store import Store, open_store
from tests.service import HERE, served
from tests.test_ledger_commands import run
from tests.test_numbers import damaged
from tests.test_upgrade import of_another_version

AGE, AGES = ca.Box([18.0], [90.0], names=["age"]), [[20.0], [55.0], [88.0]]
SPACED = ca.Box([1.0, 0.5], [9.0, 4.0], names=["price", "fee"], spacing=[0.05, 0.25])
COUPLED = ca.Polytope(
    ca.Box([1.0, 0.5], [9.0, 4.0], names=["price", "fee"], spacing=[0.0, 0.25]),
    ["price + fee <= 9"],
)


def box_of(dim: int, prefix: str) -> ca.Box:
    """Of sides and corners that no power of two divides."""
    return ca.Box(
        [-1.0 - 0.1 * i for i in range(dim)],
        [1.3 + 0.7 * i for i in range(dim)],
        names=[f"{prefix}{i}" for i in range(dim)],
    )


def made(dx: int, decision: ca.Box, reach: float | None = 0.1, **options: Any) -> ca.Policy:
    return ca.Policy(
        box_of(dx, "x"),
        decision,
        partition=options.pop("partition", ca.Grid(1)),
        learner=ca.SmoothSurface(reach=reach),
        rng=1,
        **options,
    )


def wave(u: Array) -> float:
    """The best decision on the unit cube, for a context in [-1, 1]^dx."""
    return 0.5 + 0.3 * float(np.sin(2.0 * u[:1].sum()))


def product(u: Array) -> float:
    return 0.5 + 0.4 * float(u[0] * u[1])


def play(
    policy: ca.Policy,
    rounds: int,
    seed: int = 0,
    noise: float = 0.05,
    best: Callable[[Array], float] = wave,
) -> ca.Policy:
    rng, box = np.random.default_rng(seed), policy.context
    for x in rng.random((rounds, box.dim)):
        asked = policy.ask(box.from_unit(x))
        gap = policy.decision.to_unit(asked.value) - best(2.0 * x - 1.0)
        policy.tell(asked, 3.0 - float(gap @ gap) + noise * float(rng.standard_normal()))
    return policy


def check(policy: ca.Policy, version: int = 4) -> dict[str, Any]:
    """Its table, from which a reader decides as the policy does."""
    text, box = policy.export(), policy.context
    reader = ca.Reader(text)
    units = np.vstack([np.random.default_rng(7).random((20, box.dim)), np.eye(box.dim)])
    points = box.from_unit(units)
    found = np.array([reader.decide(x.tolist()) for x in points])
    wanted = policy.recommend_many(points)
    np.testing.assert_array_less(abs(found - wanted) / policy.decision.span, 1e-9)
    table: dict[str, Any] = json.loads(text)
    assert table["version"] == version
    return table


@pytest.mark.parametrize("reach", [0.1, None])
@pytest.mark.parametrize(("dx", "dy"), [(0, 2), (1, 1), (1, 2), (2, 2), (2, 11)])
def test_a_reader_decides_as_the_policy_recommends(dx: int, dy: int, reach: float | None) -> None:
    policy = made(dx, box_of(dy, "y"), reach)
    check(policy, version=2)  # nothing is known: the start, which every reader can follow
    for k in range(3):
        [_, bin_] = check(play(policy, 120, seed=k))["bins"]
        assert ("triangle" in bin_["surface"]) == (reach is not None)
    assert np.ptp(policy.recommend_many([policy.context.low, policy.context.high])) > 0.1 * (
        dx > 0
    )
    kinds = [
        len(g["coefficients"]) for g in bin_["surface"]["groups"] if g["kind"] == "curvatures"
    ]
    assert set(kinds) == {dy if dy == 11 else dy * (dy + 1) // 2}


@pytest.mark.parametrize("reach", [0.1, None])
def test_it_climbs_where_the_surface_is_not_concave(reach: float | None) -> None:
    """Payoffs of pure noise: Hessians of every sign."""
    policy = made(1, box_of(4, "y"), reach)
    for k in range(8):
        check(play(policy, 25, seed=k, noise=100.0))


def test_products_of_many_contexts_are_in_the_table() -> None:
    table = check(play(made(4, box_of(1, "y")), 500, best=product, noise=0.02))
    groups = table["bins"][-1]["surface"]["groups"]
    assert [[0, 1], [1, 1]] in [group["context"] for group in groups]


@pytest.mark.parametrize("max_move", [None, 0.7])
@pytest.mark.parametrize("reach", [0.1, None])
@pytest.mark.parametrize("decision", [SPACED, COUPLED], ids=["spaced", "coupled"])
def test_allowed_values_are_kept_to(
    decision: ca.Box, reach: float | None, max_move: float | None
) -> None:
    policy = made(1, decision, reach, start=[3.0, 1.0], max_move=max_move)
    for k in range(8):
        table = check(play(policy, 40, seed=k))
        if max_move is not None and k == 3:
            policy.renew_reference()
    assert ("reference" in table) == (max_move is not None)
    reader = ca.Reader(json.dumps(table))
    for x in np.linspace(-1.0, 1.3, 30):
        assert decision.allows(reader.decide([x]))


@pytest.mark.parametrize("reach", [0.1, None])
def test_an_affine_incumbent_moves_and_references_are_followed(reach: float | None) -> None:
    decision = box_of(2, "y")
    start = ca.AffineRule([0.1, 0.2], [[0.5, 0.0], [-0.3, 0.2]])
    policy = made(2, decision, reach, start=start, max_move=[0.2, 0.5])
    check(policy, version=2)
    for k in range(4):
        check(play(policy, 80, seed=k))
        policy.renew_reference()
        check(policy)


def test_frozen_bins_and_segments_answer_as_of_then() -> None:
    policy = play(made(1, box_of(2, "y"), partition=ca.Grid(2)), 300)
    policy.freeze(policy.bins()[0])
    check(play(policy, 100, seed=1))
    policy.freeze({"x0": (0.5, 1.3)})
    table = check(play(policy, 200, seed=2))
    assert "surface" in table["then"][0]["bins"][-1]
    early = made(1, box_of(2, "y"))
    early.freeze({"x0": (0.5, 1.3)})
    check(early, version=3)
    check(play(early, 100))


def test_a_bin_that_nobody_has_visited_answers_with_the_start_after_a_split() -> None:
    policy = play(made(2, box_of(1, "y"), partition=ca.Tree([40, 80])), 39)
    check(policy)
    check(play(policy, 1), version=2)  # it has split
    for _ in range(5):
        check(play(policy, 1), version=2)


@cache
def learned() -> ca.Policy:
    return play(made(2, box_of(2, "y")), 300)


def test_a_table_has_the_groups_of_the_rung_that_decides() -> None:
    policy = learned()
    row = policy.life.model.state.rows[1, HEAD:]
    lead = int(row[layout.RUNG])
    end = int(layout.end_of(row, lead))
    r, d = (part[..., :end][:end] for part in ss.dense(policy.life.model.lcfg, row))
    surface = check(policy)["bins"][-1]["surface"]
    theta = [v for group in surface["groups"] for v in group["coefficients"]]
    np.testing.assert_allclose(theta, np.linalg.solve(r, d), rtol=1e-8, atol=1e-10)
    packed = np.zeros((end, end))
    for i, entries in enumerate(surface["triangle"]):
        packed[i, i:] = entries
    np.testing.assert_array_equal(packed, r)
    noise = (row[layout.WEIGHT] * layout.noise_of(row, lead)) ** 0.5
    assert surface["trust"] == pytest.approx((1.0 + 2.0 * end / row[layout.SEEN]) * noise)
    first = surface["groups"][:3]
    assert [group["kind"] for group in first] == ["level", "slopes", "curvatures"]
    assert [group["context"] for group in first] == [[], [], []]


def test_the_reader_alone_follows_it_without_numpy(tmp_path: Path) -> None:
    source = Path(ca.__file__).parent / "live" / "reader.py"
    (tmp_path / "reader.py").write_text(source.read_text())
    code = (
        f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n"
        "from reader import Reader\nprint(Reader(sys.stdin.read()).decide([0.1, 0.2]))"
    )
    command = [sys.executable, "-I", "-S", "-c", code]  # nothing is installed
    done = subprocess.run(command, capture_output=True, text=True, input=learned().export())
    wanted = learned().recommend([0.1, 0.2]).tolist()
    assert json.loads(done.stdout) == pytest.approx(wanted, abs=1e-12), done.stderr


def test_a_reader_decides_in_the_box_or_refuses_a_damaged_table() -> None:
    text, rng, read = learned().export(), random.Random(0), 0
    for _ in range(2000):
        try:
            reader = ca.Reader(damaged(text, rng))
        except ValueError:
            continue
        read += 1
        look(reader)
    assert 100 < read < 1900


def look(reader: ca.Reader) -> None:
    box, contexts = reader.decision, reader.context
    for share_ in (0.0, 0.3, 1.0):
        ends = zip(contexts["low"], contexts["high"], strict=True)
        found = reader.decide([a + share_ * (b - a) for a, b in ends])
        assert all(a <= v <= b for a, v, b in zip(box["low"], found, box["high"], strict=True))


def _put(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def edit(surface: dict[str, Any]) -> None:
        surface[name] = value

    return edit


def _in_group(which: int, name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def edit(surface: dict[str, Any]) -> None:
        surface["groups"][which][name] = value

    return edit


def _without_triangle(surface: dict[str, Any]) -> None:
    del surface["triangle"]


def _a_group_less(surface: dict[str, Any]) -> None:
    surface["groups"].pop()


def _a_pivot_of_zero(surface: dict[str, Any]) -> None:
    surface["triangle"][2][0] = 0.0


def _a_short_row(surface: dict[str, Any]) -> None:
    surface["triangle"][2].pop()


CRAFTED = {
    "no groups": _put("groups", None),
    "groups by name": _put("groups", {"a": 1}),
    "a group that is none": _put("groups", ["level"]),
    "trust below 0": _put("trust", -1.0),
    "trust that is none": _put("trust", None),
    "no triangle": _without_triangle,
    "a triangle that is a number": _put("triangle", 1.0),
    "a group less than the triangle has": _a_group_less,
    "a pivot of zero": _a_pivot_of_zero,
    "a short row": _a_short_row,
    "a kind that nobody knows": _in_group(1, "kind", "twists"),
    "a kind that is a list": _in_group(1, "kind", ["slopes"]),
    "too few slopes": _in_group(1, "coefficients", [1.0]),
    "no numbers": _in_group(1, "coefficients", [1.0, "x"]),
    "curvatures of two sizes": _in_group(2, "coefficients", [1.0, 1.0]),
    "a context that is not there": _in_group(1, "context", [[2, 1]]),
    "a context before the first": _in_group(1, "context", [[-1, 1]]),
    "a degree that takes for ever": _in_group(1, "context", [[0, 10**9]]),
    "a degree of 0": _in_group(1, "context", [[0, 0]]),
    "half a degree": _in_group(1, "context", [[0, 0.5]]),
    "a degree that is a truth": _in_group(1, "context", [[0, True]]),
    "a context that is no list": _in_group(1, "context", {"0": 1}),
}


@pytest.mark.parametrize("edit", CRAFTED.values(), ids=CRAFTED)
def test_a_crafted_surface_is_refused(edit: Callable[[dict[str, Any]], None]) -> None:
    table = json.loads(learned().export())
    if edit is CRAFTED["curvatures of two sizes"]:  # of which the first alone would do
        del table["bins"][-1]["surface"]["trust"]
        table["bins"][-1]["surface"]["groups"].append(
            {"context": [], "kind": "curvatures", "coefficients": [1.0, 1.0, 1.0]}
        )
    edit(table["bins"][-1]["surface"])
    with pytest.raises(ValueError, match=r"^the parts of a table must fit together, but this one"):
        ca.Reader(json.dumps(table))


@pytest.mark.parametrize("change", [{"version": 2}, {"version": 3}])
def test_a_surface_under_the_version_of_another_kind_is_refused(change: dict[str, int]) -> None:
    """Readers of before would answer with its best decision in the middle."""
    table = json.loads(learned().export())
    with pytest.raises(ValueError, match="damaged"):
        ca.Reader(json.dumps(table | change))
    [*_, bin_] = table["bins"]
    with pytest.raises(ValueError, match="damaged"):
        ca.Reader(json.dumps(table | {"bins": [bin_ | {"start": True}]}))


@pytest.mark.parametrize("number", [1e308, -1e308, 10**308, 5e-324, 0])
def test_numbers_of_any_size_stay_in_the_box(number: float) -> None:
    rng = random.Random(1)
    for _ in range(40):
        table = json.loads(learned().export())
        surface = table["bins"][-1]["surface"]
        for group in surface["groups"]:
            chosen = [v if rng.random() < 0.5 else number for v in group["coefficients"]]
            group["coefficients"] = chosen
        for row in surface["triangle"]:
            row[1:] = [v if rng.random() < 0.5 else number for v in row[1:]]
            row[0] = abs(number) or row[0] if rng.random() < 0.5 else row[0]
        surface["trust"] = abs(number)
        look(ca.Reader(json.dumps(table)))


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Store]:
    """A store with an experiment whose learner is a smooth surface."""
    price = ca.Box([1.0], [9.0], names=["price"])
    policy = ca.Policy(AGE, price, partition=ca.Grid(1), learner=ca.SmoothSurface(), rng=1)
    rng = np.random.default_rng(0)
    with closing(open_store(tmp_path / "shop.db")) as store:
        shared = share(policy, store, "prices", every=50)
        for age in rng.uniform(18.0, 90.0, 120):
            asked = shared.ask([age])
            payoff = 3.0 - 0.1 * float(asked.value[0] - 2.0 - 0.05 * age) ** 2
            shared.tell(asked, payoff + 0.05 * float(rng.normal()))
        yield store


def test_the_service_exports_it(shop: Store, tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "shop.db")) as other, served(other) as client:
        answer = client.get(f"{HERE}/export")
    assert (answer.status_code, answer.json()["version"]) == (200, 4)
    reader, best = ca.Reader(answer.text), SharedPolicy(shop, "prices").recommend_many(AGES)
    np.testing.assert_allclose([reader.decide(x) for x in AGES], best, rtol=0.0, atol=1e-9)


def test_an_upgrade_begins_with_it(shop: Store, tmp_path: Path) -> None:
    shared, table = SharedPolicy(shop, "prices"), tmp_path / "table.json"
    table.write_text(shared.policy().export())
    best = shared.recommend_many(AGES)
    purge(shop, "prices", shop.experiment("prices").time + 60.0)
    of_another_version(tmp_path / "shop.db", readable=False)
    said = run("upgrade", "prices", "--export", str(table), "--store", str(tmp_path / "shop.db"))
    assert "it begins with what the export recommends" in said
    assert abs(SharedPolicy(shop, "prices").recommend_many(AGES) - best).max() < 0.8


def test_an_experiment_with_it_is_moved(shop: Store, tmp_path: Path) -> None:
    lines, moved = str(tmp_path / "lines"), str(tmp_path / "moved.db")
    run("export", "prices", "--to", lines, "--store", str(tmp_path / "shop.db"))
    run("import", lines, "--store", moved)
    with closing(open_store(moved)) as other:
        again = SharedPolicy(other, "prices").policy().export()
    assert again == SharedPolicy(shop, "prices").policy().export()
