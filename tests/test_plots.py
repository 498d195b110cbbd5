"""Figures of a policy: their tables first, then that they can be drawn, whatever was learned."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import continuarm as ca
from continuarm.live.history import History
from tests.test_explain import CUSTOMER, DECISION, serve, shop
from tests.test_inspect import run


@pytest.fixture(scope="module")
def served() -> ca.Policy:
    policy = shop(share=0.1)
    serve(policy, 3000)
    return policy


def test_what_was_learned_along_a_context_is_what_explain_says(served: ca.Policy) -> None:
    table = ca.plots.learned_table(served, "income", at={"age": 37}, points=5)
    assert table.columns[0] == "income"
    assert len(table.rows) == 10
    for income, coordinate, learned, peak, error, today, guards in table.rows:
        assert guards == ""
        found, j = served.explain([37, income]), DECISION.names.index(coordinate)
        assert [learned, peak, error, today] == [
            found[key][j] for key in ("centre", "peak", "peak_error", "start")
        ]


@pytest.mark.parametrize("colour", ["visits", "payoff", "price"])
def test_bins_cover_the_map_once_and_have_the_colour_that_was_asked_for(
    served: ca.Policy, colour: str
) -> None:
    table, area = ca.plots.bins_table(served, colour=colour), 0.0
    bins = {one.id: one for one in served.bins()}
    for number, left, right, low, high, guards, value in table.rows:
        assert guards == ""
        one = bins.pop(number)
        area += (right - left) / 72 * (high - low) / 2.5e5
        middle = served.expected(0.5 * (one.low + one.high), [one.best])
        assert middle is not None
        assert value == {"visits": one.told, "payoff": middle[0, 0], "price": one.best[0]}[colour]
    assert not bins
    assert area == pytest.approx(1.0)
    strip = ca.plots.bins_table(served, ["income"], at={"age": 20.0})
    assert sum(row[2] - row[1] for row in strip.rows) == pytest.approx(2.5e5)


def test_the_expected_payoff_has_its_slope_its_peak_and_its_noise() -> None:
    """A regression on decisions of the whole box: 4 standard errors hold the truth; its slope and
    its highest point are those that `explain` gives."""
    box, rng = ca.Box([0.0], [10.0], names=["price"]), np.random.default_rng(0)
    learner = ca.ResponseSurface(fade=0.0, ridge=1e-9)
    policy = ca.Policy(ca.Box.unit(0), box, partition=ca.Grid(1), learner=learner, rng=0)
    for _ in range(400):
        price = rng.uniform(0, 10)
        policy.tell(policy.ask(), 5.0 - 0.1 * (price - 6.0) ** 2 + rng.normal(), value=[price])
    table = ca.plots.payoff_table(policy)
    price, mean, error, tried, allowed = np.array(table.rows, float).T
    assert allowed.all()
    assert (abs(mean - 5.0 + 0.1 * (price - 6.0) ** 2) < 4.0 * error).all()
    assert 0.5 / np.sqrt(400) < error.min() < 2.0 / np.sqrt(400)
    assert tried[1:-1].all()
    found = policy.explain()
    assert price[mean.argmax()] == pytest.approx(found["peak"][0], abs=0.05)
    within = policy.explain(within={"price": (2.0, 3.0)})
    ends = policy.expected((), [[2.999], [3.001]])
    assert ends is not None
    assert np.diff(ends[:, 0])[0] / 0.002 == pytest.approx(within["per_unit"][0], rel=1e-3)


def test_nothing_is_expected_where_nothing_is_known() -> None:
    for policy in (shop(), ca.StaticKWSA(ca.Box.unit(1), ca.Box.unit(1), bins=2, step=1.0)):
        middle, best = policy.context.centre, policy.decision.centre
        assert policy.expected(middle, [best]) is None
        assert ca.plots.payoff_table(policy, middle).rows == ()


def test_history_is_the_mean_of_what_was_told_in_buckets_of_equal_size() -> None:
    policy, rng = shop(share=0.3), np.random.default_rng(1)
    told = []
    for k in range(1000):
        decision = policy.ask(CUSTOMER)
        payoff = float(rng.normal()) + k
        policy.tell(decision, payoff)
        told.append((decision.role == "incumbent", payoff))
    table = policy.history()
    assert {row[0] for row in table.rows} == {"ours", "incumbent's"}
    assert len(table.rows) <= 128
    for whose, first, last, counted, mean, error in table.rows:
        part = [z for theirs, z in told[first:last] if theirs == (whose != "ours")]
        assert counted == len(part)
        assert mean == pytest.approx(np.mean(part))
        if counted > 1:
            expected = np.std(part, ddof=1) / np.sqrt(counted)
            assert error == pytest.approx(expected, rel=1e-6)
    assert {last - first for _, first, last, *_ in table.rows} == {16, 1000 % 16}
    again = ca.Policy.from_snapshot(policy.snapshot())
    assert again.history() == table
    assert policy.copy().history() == table


def test_history_tells_the_decisions_of_a_pause_from_ours() -> None:
    policy = shop()
    serve(policy, 10)
    policy.pause()
    serve(policy, 7)
    policy.resume()
    serve(policy, 5)
    counted = {"ours": 0, "incumbent's": 0}
    for whose, _, _, n, *_ in policy.history().rows:
        counted[whose] += n
    assert counted == {"ours": 15, "incumbent's": 7}


def test_nothing_is_drawn_across_a_gap_of_the_history() -> None:
    policy = ca.SurfaceSampling(ca.Box.unit(1), ca.Box.unit(1), share=0.2, start=[0.5], rng=0)
    for k in range(900):
        if k == 300:
            policy.pause()
        if k == 600:
            policy.resume()
        decision = policy.ask([k % 7 / 7])
        policy.tell(decision, -float(decision.value[0]))
    (axes,) = policy.plot_history().axes
    ours, theirs = (np.array(line.get_xydata(), float) for line in axes.lines)
    gap = np.isnan(ours).any(axis=1)
    assert gap.sum() == 1
    [at] = np.flatnonzero(gap)
    assert ours[at - 1, 0] < 310
    assert ours[at + 1, 0] > 590
    assert not np.isnan(theirs).any()
    assert [len(band.get_paths()) for band in axes.collections] == [2, 1]


def test_the_history_of_a_replayed_policy_is_the_same() -> None:
    policy, heard = shop(share=0.2), list[Any]()
    beginning = policy.snapshot()
    policy.listen(heard.append)
    serve(policy, 150)
    again = ca.Policy.from_snapshot(beginning)
    for event in heard:
        again.apply(event)
    assert again.history() == policy.history()
    assert again.snapshot() == policy.snapshot()


def test_a_history_that_cannot_be_is_refused() -> None:
    policy = shop()
    serve(policy, 100)
    head, _, data = policy.snapshot().partition(b"\n")
    header = json.loads(head)
    for wrong in ([101, 2, False], [100, 3, False], [100, 1, False], [100, 2, 1], [-1, 2, False]):
        text = json.dumps(header | {"history": wrong}).encode()
        with pytest.raises(ca.errors.SavedFileError):
            ca.Policy.from_snapshot(text + b"\n" + data)


def test_buckets_merge_in_pairs_when_all_are_full() -> None:
    history = History()
    for k in range(200):
        history = history.with_room()
        place = history.place(k % 5 == 0)
        for offset, size in enumerate((1.0, float(k), float(k * k))):
            history.numbers[place + offset] += size
        history.told += 1
    assert (history.width, history.told) == (4, 200)
    ours, theirs = (history.buckets(theirs=flag) for flag in (False, True))
    assert sum(one.counted for one in ours) == 160
    assert sum(one.counted for one in theirs) == 40
    assert [one.first for one in ours] == list(range(0, 200, 4))


def test_the_table_of_an_explanation_has_a_row_per_coordinate(served: ca.Policy) -> None:
    found = served.explain(CUSTOMER)
    rows = ca.plots.explanation_table(found).dicts()
    assert [row["coordinate"] for row in rows] == ["price", "fee"]
    for j, row in enumerate(rows):
        assert row["best known"] == row["decision"] == found["centre"][j]
        assert row["allowed from"] >= row["box from"] == DECISION.low[j]
        assert row["per unit"] == found["per_unit"][j]


def test_every_figure_is_drawn_whatever_was_learned(served: ca.Policy, tmp_path: Path) -> None:
    """Long names, no names, no payoffs, one bin, no contexts, many contexts, a constant payoff."""
    long = [f"visits in the last {k} days before the order of today" for k in range(9)]
    many = ca.SurfaceSampling(
        ca.Box(np.zeros(9), np.full(9, 1e9), names=long),
        ca.Box(np.full(3, 1e-7), np.full(3, 9e-7), names=long[:3]),
        rng=0,
    )
    constant = ca.SurfaceSampling(ca.Box.unit(0), ca.Box.unit(1), rng=0)
    for _ in range(30):
        constant.tell(constant.ask(), 2.0)
    stencils = ca.StaticKWSA(ca.Box.unit(1), ca.Box.unit(2), bins=4, step=1.0)
    stencils.tell(stencils.ask([0.3]), 1.0)
    for name, policy in {
        "served": served,
        "empty": shop(),
        "many": many,
        "constant": constant,
        "stencils": stencils,
    }.items():
        middle = policy.context.centre
        files = {what: tmp_path / f"{name}-{what}.png" for what in ("a", "b", "c", "d", "e", "f")}
        policy.plot_history(files["a"])
        policy.plot_bins(path=files["b"], colour="payoff")
        policy.plot_payoff(middle, path=files["c"])
        policy.plot_payoff(middle, over=policy.decision.names[0], path=files["d"])
        policy.explain(middle).plot(files["e"])
        if policy.context.dim:
            policy.plot_learned(path=files["f"])
        assert all(file.stat().st_size > 5000 for file in files.values() if file.exists())
    assert len(list(tmp_path.iterdir())) == 29


def test_figures_show_what_guards_have_set(tmp_path: Path) -> None:
    """Higher prices pay more; near the start is 4.3 at most, and 5.2 together with the fee."""
    box = ca.Box([1.0, 0.0], [9.0, 4.0], names=["price", "fee"], spacing={"price": 0.5})
    decision, rng = ca.Polytope(box, ["price + fee <= 5.2"]), np.random.default_rng(0)
    context, start = ca.Box([0.0], [1.0], names=["x"]), {"price": 3.3, "fee": 1.0}
    policy = ca.SurfaceSampling(context, decision, start=start, max_move={"price": 1.0}, rng=1)
    for x in rng.random(200):
        asked = policy.ask([x])
        policy.tell(asked, float(asked.value[0] - (asked.value[1] - 1.0) ** 2))
    policy.freeze(policy.bins()[0])
    [(*_, guards, best)] = ca.plots.bins_table(policy, colour="price").rows
    assert "max_move" in guards
    assert guards.endswith("freeze")
    assert best == policy.recommend([0.5])[0] == 4.0
    assert all("freeze" in row[-1] for row in ca.plots.learned_table(policy, points=3).rows)
    for price, *_, allowed in ca.plots.payoff_table(policy, [0.5], "price").rows:
        fee = policy.recommend([0.5])[1]
        assert allowed == (2.3 - 1e-9 <= price <= min(4.3, 5.2 - fee) + 1e-9)
    policy.plot_bins(path=tmp_path / "a.png")
    policy.plot_learned(path=tmp_path / "b.png")
    policy.plot_payoff([0.5], path=tmp_path / "c.png")
    policy.plot_payoff([0.5], "price", path=tmp_path / "d.png")
    assert all(file.stat().st_size > 5000 for file in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda p: p.plot_learned("height"), "one of"),
        (lambda p: p.plot_bins(["age", "age"]), "one or two different contexts"),
        (lambda p: p.plot_bins("map.png"), "a file is given by `path='map.png'`$"),
        (lambda p: p.plot_learned(Path("map.png")), "a file is given by `path='map.png'`$"),
        (lambda p: p.plot_payoff(CUSTOMER, "map.png"), "a file is given by `path='map.png'`$"),
        (lambda p: p.plot_bins(colour="red"), "`colour` must be one of"),
        (lambda p: p.plot_payoff(CUSTOMER, over=["price", "fee", "price"]), "one or two"),
        (lambda p: p.plot_payoff(CUSTOMER, at={"price": 99.0}), "price"),
        (lambda p: p.plot_history("nowhere/history.png"), "folder must exist"),
        (lambda p: p.plot_history("history.txt"), "must end in one of"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_line(
    served: ca.Policy, draw: Any, message: str
) -> None:
    with pytest.raises(ca.errors.ContinuarmError, match=message) as raised:
        draw(served)
    assert "\n" not in str(raised.value)


def test_inspect_draws_the_figures_that_make_sense(
    served: ca.Policy, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    served.save(tmp_path / "shop.continuarm")
    files = [str(tmp_path / "shop.continuarm"), "--plot", str(tmp_path / "shop.png")]
    out, _, code = run(monkeypatch, capsys, "inspect", *files)
    made = {"learned-age", "learned-income", "bins", "history"}
    assert code == 0
    assert {file.stem for file in tmp_path.glob("*.png")} == {f"shop-{what}" for what in made}
    assert all(f"shop-{what}.png" in out for what in made)
    customer = ["--context", "age=37", "--context", "income=152000"]
    out, _, _ = run(monkeypatch, capsys, "inspect", *files, *customer, "--json")
    assert len(json.loads(out)["figures"]) == 6
    _, error, code = run(monkeypatch, capsys, "inspect", files[0], "--plot", "shop.txt")
    assert code != 0
    assert "must end in one of" in error
