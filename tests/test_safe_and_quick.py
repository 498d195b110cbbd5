"""What benchmarks/safe_and_quick.py measures with."""

import json
from pathlib import Path

import numpy as np
import pytest

import continuarm as ca
from benchmarks.safe_and_quick import PARTS, extend, stored
from benchmarks.safe_and_quick_page import write_page
from benchmarks.safe_and_quick_run import (
    NEW,
    POLICIES,
    QUICK,
    SHOPS,
    START,
    TODAY,
    TUNED,
    WIDE,
    Task,
    log_of,
    shops,
    taught,
)
from benchmarks.safe_and_quick_tables import Found, Judged, first_day, frontier, noise_at_start
from continuarm.lab.measures import Interval


def made_up() -> dict[str, Found]:
    """Results in which the start costs 1 per decision, and a policy less and less."""
    rng = np.random.default_rng(0)
    parts: dict[str, Found] = {}
    for name, (tasks, _) in PARTS.items():
        part = parts.setdefault(name, {})
        for task in tasks(QUICK):
            marks = np.array(task.marks, float)
            costs = marks if task.policy == START else 2.0 * marks**0.8
            each = [costs * (0.9 + 0.2 * rng.random()) for _ in range(3)]
            part[task.key] = [
                {"regret": list(one), "recommend": list(one / marks)} for one in each
            ]
    return parts


def test_the_worlds_are_what_the_page_says() -> None:
    assert len(SHOPS) == len(set(SHOPS)) == 12
    for name in TUNED:
        world = ca.problem(name)
        best, _ = world.best_many(world.draw_contexts(np.random.default_rng(0), 50))
        np.testing.assert_allclose(best, np.tile(world.decision.centre, (50, 1)))
    columns = [ca.problem(name).context.dim for name in WIDE]
    assert columns == [10, 30, 80, 30]
    assert noise_at_start(ca.problem("tuned-loud")) == pytest.approx(3.0, rel=0.05)


def test_the_policy_of_today_is_the_one_that_is_named() -> None:
    world = ca.problem("far-purchase")
    run = {
        policy: ca.simulate(policy, world, horizon=300, rng=0, checkpoints=1).regret
        for policy in (POLICIES[TODAY], ca.SurfaceSampling)
    }
    mine, named = run.values()
    assert mine == named


def test_seeds_can_be_added_and_nothing_runs_twice(tmp_path: Path) -> None:
    tasks = [Task("tuned-purchase", policy, (30, 60)) for policy in (START, TODAY)]
    once, twice = tmp_path / "once.json", tmp_path / "twice.json"
    extend(tasks, once, 3)
    extend(tasks, twice, 1)
    kept = stored(twice)[tasks[1].key][0]
    extend(tasks, twice, 3)
    assert stored(once) == stored(twice)
    assert stored(twice)[tasks[1].key][0] == kept
    changed = stored(twice)
    changed[tasks[1].key][0]["regret"] = [7.0, 7.0]
    twice.write_text(json.dumps(changed))
    extend(tasks, twice, 2)
    assert stored(twice) == changed
    assert stored(twice)[tasks[0].key][0]["regret"] == [0.0, 0.0]  # the start is the best


@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_a_log_lies_around_the_start_and_is_learned(spread: float) -> None:
    world = ca.problem("far-third")
    log = log_of(world, 400, spread, seed=1)
    for k in range(2):
        off = abs(log[f"y{k}"] - world.decision.centre[k]) / world.decision.span[k]
        assert 0.9 * spread <= off.max() <= spread + 1e-12
    policy = taught(world, POLICIES[NEW], 400, spread, seed=1)
    assert sum(one.told for one in policy.bins()) == 400


def test_a_limit_holds_is_missed_or_neither_surely() -> None:
    said = [
        str(Judged("cost", "shop", Interval(value, low, high), 1.3))
        for value, low, high in ((1.2, 1.1, 1.25), (1.2, 1.1, 1.4), (1.5, 1.4, 1.6))
    ]
    assert said == ["holds", "holds, inconclusive", "**missed**"]


def test_the_first_day_is_its_worst_mark() -> None:
    found = made_up()["shops"]
    value, mark = first_day(found, SHOPS[0], NEW, QUICK.shops, "regret")
    assert mark == QUICK.shops[0]  # 2 n^0.8 / n falls
    assert value.value == pytest.approx(2.0 * 30**-0.2, rel=0.2)
    assert value.low < value.value < value.high
    points = frontier(found, QUICK)
    assert set(points) == set(POLICIES)
    assert all(one.end == 1.0 for one in points[TODAY].values())


def test_the_page_and_its_figure_are_made_of_the_results(tmp_path: Path) -> None:
    write_page(made_up(), QUICK, tmp_path)
    text = (tmp_path / "safe-and-quick.md").read_text()
    assert "none of these numbers counts" in text
    assert all(world in text for world in (*SHOPS, *TUNED, *WIDE))
    assert "nan" not in text
    assert (tmp_path / "figures" / "safe-and-quick.png").stat().st_size > 10_000


def test_every_policy_meets_every_shop() -> None:
    met = {(task.world, task.policy) for task in shops(QUICK)}
    assert met == {(w, p) for w in (*SHOPS, *TUNED) for p in (START, *POLICIES)}
