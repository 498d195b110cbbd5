"""What a simulation promises: seeds, streams, checkpoints, copies, own policies."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import continuarm as ca
from continuarm.errors import InputError, ProblemError, SettingsError

WORLD = ca.problem("two-communities")
NAMES = (
    "recommended",
    "static-kwsa",
    "adaptive-kwsa",
    "uniform-ucb",
    "robbins-monro",
    "oracle",
    "fixed",
)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_numbers_whatever_else(name: str) -> None:
    """Not on the number of workers, of replications, or where the run pauses."""
    one = ca.simulate(name, WORLD, horizon=20_000, replications=3, rng=5, workers=1)
    two = ca.simulate(
        name,
        WORLD,
        horizon=20_000,
        replications=2,
        rng=5,
        workers=2,
        checkpoints=[7, 16_384, 17_000],
    )
    np.testing.assert_array_equal(one.regret[:2, -1], two.regret[:, -1])
    again = ca.simulate(name, WORLD, horizon=20_000, replications=3, rng=5, workers=2)
    np.testing.assert_array_equal(one.regret, again.regret)
    np.testing.assert_array_equal(one.recommend_regret, again.recommend_regret)
    if name not in ("oracle",):
        assert len(set(one.regret[:, -1])) == 3


def test_a_longer_run_begins_like_a_shorter_one() -> None:
    policy = ca.StaticKWSA(WORLD.context, WORLD.decision, bins=9, step=1.0)
    short = ca.simulate(policy, WORLD, horizon=1000, rng=1)
    long = ca.simulate(policy, WORLD, horizon=40_000, rng=1, checkpoints=[1000])
    assert short.regret[0, -1] == long.regret[0, 0]


def test_all_policies_meet_the_same_contexts_and_noise() -> None:
    """Two policies that decide alike earn the same payoffs: their states are equal."""
    grid = ca.StaticKWSA(WORLD.context, WORLD.decision, bins=1, step=1.0)
    tree = ca.AdaptiveKWSA(WORLD.context, WORLD.decision, depth=0, step=1.0)
    runs = [ca.simulate(p, WORLD, horizon=5000, replications=2, rng=3) for p in (grid, tree)]
    np.testing.assert_array_equal(runs[0].regret, runs[1].regret)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([10, 100], [10, 100, 1000]),
        ([1000], [1000]),
        ([100, 10, 100], [10, 100, 1000]),
        (1, [1000]),
        (3, [10, 100, 1000]),
        ([], [1000]),
    ],
)
def test_the_last_checkpoint_is_the_horizon(given: Any, expected: list[int]) -> None:
    run = ca.simulate("fixed", WORLD, horizon=1000, rng=0, checkpoints=given)
    assert run.checkpoints.tolist() == expected
    assert run.regret.shape == run.recommend_regret.shape == (1, len(expected))


def test_a_policy_passed_in_is_copied_with_its_state() -> None:
    policy = ca.AdaptiveKWSA(WORLD.context, WORLD.decision, horizon=10_000, curvature=0.34)
    for x in np.random.default_rng(0).random((500, 1)):
        policy.tell(policy.ask(x), 0.0)
    before = policy.engine.rows.copy()
    run = ca.simulate(policy, WORLD, horizon=100, rng=0)
    np.testing.assert_array_equal(policy.engine.rows, before)
    told = int(sum(row[3] for row in run.policies[0].engine.rows))
    assert told == 600


def test_the_problem_tells_what_the_policy_was_not_told() -> None:
    given = ca.StaticKWSA(WORLD.context, WORLD.decision, horizon=3000, curvature=WORLD.curvature)
    for policy in (
        "static-kwsa",
        ca.StaticKWSA,
        ca.StaticKWSA(WORLD.context, WORLD.decision),
    ):
        runs = [ca.simulate(p, WORLD, horizon=3000, rng=0) for p in (given, policy)]
        np.testing.assert_array_equal(runs[0].regret, runs[1].regret)
    unknown = ca.Problem(
        context=WORLD.context, decision=WORLD.decision, mean_payoff=WORLD.sources.mean_payoff
    )
    with pytest.raises(SettingsError, match="`curvature` or `step` is needed"):
        ca.simulate("static-kwsa", unknown, horizon=100)
    with pytest.raises(SettingsError, match="needs a problem with `gradient`"):
        ca.simulate(ca.RobbinsMonro(WORLD.context, WORLD.decision, step=1.0), unknown, horizon=100)
    with pytest.raises(ProblemError, match="has none"):
        unknown.gradient([0.5], [0.5, 0.5])


class Own:
    """A policy of a user: the middle of the box, moved by a coin."""

    def __init__(self, context: Any, decision: Any, horizon: int, rng: Any) -> None:
        self.rng, self.told, self.horizon = rng, 0, horizon

    def ask(self, context: Any) -> Any:
        return [0.5, 0.5 + 0.1 * self.rng.random()]

    def tell(self, decision: Any, payoff: float) -> None:
        self.told += 1


def test_a_policy_of_ones_own() -> None:
    run = ca.simulate(Own, WORLD, horizon=200, replications=2, rng=0, checkpoints=[100])
    assert run.policy == "Own"
    assert [p.told for p in run.policies] == [200, 200]
    assert run.regret[0, -1] != run.regret[1, -1]
    assert np.isnan(run.recommend_regret).all()
    with pytest.raises(SettingsError, match="with bins is needed"):
        run.bins()
    fixed = ca.simulate(ca.Fixed([0.5, 0.55]), WORLD, horizon=200, rng=0)
    assert run.regret[0, -1] == pytest.approx(fixed.regret[0, -1], rel=0.3)


def test_a_policy_of_ones_own_that_leaves_the_box_is_refused() -> None:
    class Outside(Own):
        def ask(self, context: Any) -> Any:
            return [0.5, 1.5]

    with pytest.raises(InputError, match=r"must hold, but got 1\.5"):
        ca.simulate(Outside, WORLD, horizon=10)
    with pytest.raises(SettingsError, match="must have `ask` and `tell`"):
        ca.simulate(lambda context, decision, horizon, rng: 3, WORLD, horizon=10)


@pytest.mark.parametrize(
    "bad",
    [
        {"horizon": 0},
        {"horizon": 1.5},
        {"replications": 0},
        {"checkpoints": [0]},
        {"checkpoints": [101]},
        {"workers": 0},
        {"policy": "best"},
        {"policy": 3},
        {"problem": "none"},
        {"problem": 3},
        {"policy": ca.StaticKWSA(ca.Box.unit(2), ca.Box.unit(2), step=1.0, bins=2)},
        {"policy": ca.Fixed([2.0, 2.0])},
    ],
)
def test_bad_arguments_are_refused(bad: dict[str, Any]) -> None:
    call: dict[str, Any] = {"policy": "fixed", "problem": WORLD, "horizon": 100} | bad
    with pytest.raises((SettingsError, InputError), match="but got"):
        ca.simulate(call.pop("policy"), call.pop("problem"), **call)


def test_the_result_can_be_read() -> None:
    run = ca.simulate(
        "adaptive-kwsa", WORLD, horizon=2000, replications=3, rng=0, checkpoints=[100]
    )
    np.testing.assert_allclose(run.mean, run.regret.mean(axis=0))
    np.testing.assert_allclose(run.standard_error, run.regret.std(axis=0, ddof=1) / np.sqrt(3))
    table = run.table()
    assert [row["decisions"] for row in table.dicts()] == [100, 2000]
    assert table.dicts()[1]["regret"] == pytest.approx(run.mean[1])
    assert "2,000" in str(table)
    assert table.markdown().count("\n") == 3
    assert run.seconds > 0
    assert run.decisions_per_second == pytest.approx(6000 / run.seconds)
    assert sum(b.asked for b in run.bins(2)) <= 2000
    alone = ca.simulate("fixed", WORLD, horizon=100, rng=0)
    assert np.isnan(alone.standard_error).all()
    assert alone.table().dicts()[0]["std error"] is None


def test_a_result_draws_itself(tmp_path: Any) -> None:
    runs = ca.simulate("adaptive-kwsa", WORLD, horizon=2000, replications=3, rng=0)
    path = tmp_path / "regret.png"
    figure = runs.plot(str(path))
    assert path.stat().st_size > 10_000
    line = figure.axes[0].lines[0]
    np.testing.assert_array_equal(line.get_xdata(), runs.checkpoints)
    np.testing.assert_allclose(np.asarray(line.get_ydata(), float), runs.mean)
    with pytest.raises(SettingsError, match="must end in one of"):
        runs.plot(str(tmp_path / "regret.doc"))
    with pytest.raises(SettingsError, match="folder must exist"):
        runs.plot(str(tmp_path / "nowhere" / "regret.png"))


def test_progress_is_reported() -> None:
    seen: list[int] = []
    ca.simulate("fixed", WORLD, horizon=100_000, replications=2, rng=0, progress=seen.append)
    assert sum(seen) == 200_000
    assert len(seen) > 3


def test_skewed_contexts_come_from_the_users_function() -> None:
    world = ca.Problem(
        context=WORLD.context,
        decision=WORLD.decision,
        mean_payoff=WORLD.sources.mean_payoff,
        best_decision=WORLD.sources.best_decision,
        curvature=WORLD.curvature,
        contexts=lambda rng, n: rng.beta(0.5, 5.0, (n, 1)),
    )
    run = ca.simulate("adaptive-kwsa", world, horizon=30_000, rng=0)
    widths = {float(b.high[0] - b.low[0]) for b in run.bins()}
    assert len(widths) > 1  # finer where contexts are


@pytest.mark.parametrize(("dx", "dy"), [(0, 1), (1, 100), (6, 3)])
def test_any_dimension_runs(dx: int, dy: int) -> None:
    world = ca.problem("quadratic", dx=dx, dy=dy, rotation=False)
    for name in ("static-kwsa", "adaptive-kwsa"):
        run = ca.simulate(name, world, horizon=20_000, rng=0)
        assert 0 < run.regret[0, -1] < np.inf


def test_ten_context_dimensions_fit_in_memory() -> None:
    """A depth of 4 has 2^40 bins, of which those visited are made; measured in a new process."""
    code = """
from pathlib import Path
import continuarm as ca
world = ca.problem("quadratic", dx=10, dy=2)
policy = ca.AdaptiveKWSA(world.context, world.decision, depth=4)
run = ca.simulate(policy, world, horizon=1_000_000, rng=0, checkpoints=1)
peak = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
print(peak, int(run.policies[0].engine.nodes[0, 1]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    kilobytes, rows = map(int, done.stdout.split())
    assert rows > 100_000
    assert kilobytes < 1_000_000
