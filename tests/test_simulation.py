"""What a simulation promises: seeds, streams, checkpoints, copies, own policies."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import continuarm as ca
from continuarm.cli import cli
from continuarm.core.state import CLOCK
from continuarm.errors import InputError, PolicyError, ProblemError, SettingsError
from continuarm.live.named import by_name

WORLD = ca.problem("two-communities")
NAMES = (
    "recommended",
    "static-kwsa",
    "adaptive-kwsa",
    "uniform-ucb",
    "robbins-monro",
    "linear-thompson",
    "cosine-thompson",
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
    before = policy.snapshot()
    run = ca.simulate(policy, WORLD, horizon=100, rng=0)
    assert policy.snapshot() == before
    assert run.policies[0].life.model.state.counts[CLOCK] == 600  # payoffs learned


def test_the_problem_tells_what_the_policy_was_not_told() -> None:
    given = ca.StaticKWSA(WORLD.context, WORLD.decision, horizon=3000, curvature=WORLD.curvature)
    same: list[Any] = ["static-kwsa", ca.StaticKWSA, ("static-kwsa", {})]
    for policy in same:
        runs = [ca.simulate(p, WORLD, horizon=3000, rng=0) for p in (given, policy)]
        np.testing.assert_array_equal(runs[0].regret, runs[1].regret)
    unknown = ca.Problem(
        context=WORLD.context, decision=WORLD.decision, mean_payoff=WORLD.sources.mean_payoff
    )
    with pytest.raises(SettingsError, match="`curvature` or `step` is needed"):
        ca.simulate("static-kwsa", unknown, horizon=100)
    with pytest.raises(SettingsError, match="needs a problem with `gradient`"):
        ca.simulate(("robbins-monro", {"step": 1.0}), unknown, horizon=100)
    ready = ca.RobbinsMonro(WORLD.context, WORLD.decision, step=1.0, bins=3)
    with pytest.raises(SettingsError, match="RobbinsMonro needs a problem with `gradient`"):
        ca.simulate(ready, unknown, horizon=100)
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
    middle = ca.Fixed(WORLD.context, WORLD.decision, value=[0.5, 0.55])
    fixed = ca.simulate(middle, WORLD, horizon=200, rng=0)
    assert run.regret[0, -1] == pytest.approx(fixed.regret[0, -1], rel=0.3)


def test_a_policy_of_ones_own_that_leaves_the_box_is_refused() -> None:
    class Outside(Own):
        def ask(self, context: Any) -> Any:
            return [0.5, 1.5]

    with pytest.raises(PolicyError, match=r"must hold, but got 1\.5"):
        ca.simulate(Outside, WORLD, horizon=10)
    with pytest.raises(SettingsError, match="must have `ask` and `tell`"):
        ca.simulate(lambda context, decision, horizon, rng: 3, WORLD, horizon=10)


class BestOfSome:
    """A baseline without bins: the best so far of some decisions, each tried in turn first."""

    def __init__(self, decisions: Any) -> None:
        self.decisions, self.sums = decisions, np.zeros(len(decisions))
        self.told = np.zeros(len(decisions), int)

    def ask(self, context: Any) -> Any:
        self.last = int(np.argmax(self.sums / np.maximum(self.told, 1) + 9.0 * (self.told < 3)))
        return self.decisions[self.last]

    def tell(self, decision: Any, payoff: float) -> None:
        self.sums[self.last] += payoff
        self.told[self.last] += 1


def best_of_some(
    context: ca.Box, decision: ca.Box, *, horizon: int, rng: np.random.Generator
) -> BestOfSome:
    """Two boxes, and what it wants to know by name: no partition, no learner."""
    return BestOfSome(decision.from_unit(rng.random((round(horizon**0.3), decision.dim))))


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> str:
    """The baseline by name, until the test is over."""
    ca.register_policy("best-of-some", best_of_some)
    return "best-of-some"


def test_a_registered_baseline_works_wherever_a_name_is_taken(
    registered: str, tmp_path: Path
) -> None:
    """`simulate`, `compare`, `Experiment` and the command line give the same numbers."""
    assert registered in by_name.names()
    horizons, seeds = [100, 300], (0, 1)
    alone = {
        horizon: [
            float(ca.simulate(registered, WORLD, horizon=horizon, rng=seed).regret[0, -1])
            for seed in seeds
        ]
        for horizon in horizons
    }
    assert len({*alone[100], *alone[300]}) == 4
    made = ca.simulate(best_of_some, WORLD, horizon=300, rng=1)
    assert made.regret[0, -1] == alone[300][1]
    assert len(made.policies[0].decisions) == 6  # it was told the horizon

    compared = ca.compare(
        [registered, "fixed"], ["two-communities"], horizons=horizons, replications=2
    )
    for horizon in horizons:
        score = compared.of("two-communities", horizon, registered)
        assert score.regret.tolist() == alone[horizon]

    experiment = ca.Experiment(
        policies=[registered], problems=["two-communities"], horizons=horizons, replications=2
    )
    table = experiment.run(tmp_path, workers=1)
    for horizon in horizons:
        assert table.filter(horizon=horizon)["regret"].to_list() == alone[horizon]
    assert len((tmp_path / "runs.jsonl").read_bytes().splitlines()) == 4  # it plans

    arguments = ["--horizon", "300", "--replications", "2", "--policy", registered, "--json"]
    shown = CliRunner().invoke(cli, ["simulate", *arguments])
    assert shown.exit_code == 0, shown.output
    runs = ca.simulate(registered, WORLD, horizon=300, replications=2, rng=0)
    assert json.loads(shown.output)["regret_mean"] == runs.mean.tolist()
    shown = CliRunner().invoke(cli, ["compare", "--policy", "fixed", *arguments])
    assert shown.exit_code == 0, shown.output
    scores = {s["policy"]: s["regret"] for s in json.loads(shown.output)["scores"]}
    assert scores[registered] == alone[300]


def test_a_registered_baseline_learns_from_late_payoffs(registered: str) -> None:
    """Each decision is told once, or never; the order may be another."""

    class Counts:
        def __init__(self) -> None:
            self.asked = 0
            self.told: list[int] = []

        def ask(self, context: Any) -> Any:
            self.asked += 1
            return np.array([self.asked / 1000, 0.5])

        def tell(self, decision: Any, payoff: float) -> None:
            self.told.append(round(1000 * decision[0]))

    def counts(context: ca.Box, decision: ca.Box) -> Counts:
        return Counts()

    world = WORLD.with_feedback(delay=lambda rng, n: rng.integers(0, 30, n), lost=0.3)
    (policy,) = ca.simulate(counts, world, horizon=500, rng=0).policies
    assert policy.asked == 500
    assert len(set(policy.told)) == len(policy.told)
    assert 300 < len(policy.told) < 400
    assert policy.told != sorted(policy.told)
    late = ca.simulate(registered, world, horizon=200, rng=0)
    assert late.regret[0, -1] > 0


def test_a_name_that_is_taken_is_refused(registered: str) -> None:
    ca.register_policy(registered, best_of_some)  # the same again is allowed
    for name in (registered, "static-kwsa", "", 3):
        with pytest.raises(SettingsError, match=r"a name .* is needed, but"):
            ca.register_policy(name, Own)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match=r"takes the settings \['horizon', 'rng'\]"):
        ca.simulate((registered, {"colour": "red"}), WORLD, horizon=10)


class Diagonal:
    """A rule that is known from the start; with `decide_many` it is never asked one by one."""

    def __init__(self) -> None:
        self.asked, self.blocks = 0, list[int]()

    def ask(self, context: Any) -> Any:
        self.asked += 1
        return [context[0], 1.0 - context[0]]

    def tell(self, decision: Any, payoff: float) -> None:
        raise AssertionError("there is nothing to learn")


class DiagonalAtOnce(Diagonal):
    def decide_many(self, contexts: Any) -> Any:
        self.blocks.append(len(contexts))
        return np.column_stack([contexts[:, 0], 1.0 - contexts[:, 0]])


class DiagonalOneByOne(Diagonal):
    def tell(self, decision: Any, payoff: float) -> None:
        pass


def test_a_policy_that_decides_at_once_runs_block_by_block() -> None:
    """With the numbers of the same rule asked one by one, made by a maker or given itself."""
    slow = ca.simulate(
        lambda context, decision: DiagonalOneByOne(), WORLD, horizon=40_000, rng=2, checkpoints=2
    )
    assert slow.policies[0].asked == 40_000
    policy = DiagonalAtOnce()
    for given in (policy, lambda context, decision: DiagonalAtOnce()):
        fast = ca.simulate(given, WORLD, horizon=40_000, rng=2, checkpoints=2)
        (used,) = fast.policies
        np.testing.assert_array_equal(fast.regret, slow.regret)
        assert used.asked == 0
        assert sum(used.blocks) == 40_000
        assert len(used.blocks) == 4  # three blocks, the first in two parts at the checkpoint 10
    assert np.isnan(fast.recommend_regret).all()


def test_a_policy_that_decides_at_once_outside_the_box_is_refused() -> None:
    class Outside(DiagonalAtOnce):
        def decide_many(self, contexts: Any) -> Any:
            return 2.0 + super().decide_many(contexts)

    with pytest.raises(InputError, match="must hold, but got"):
        ca.simulate(Outside(), WORLD, horizon=10)


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
        {"policy": ca.Fixed(ca.Box.unit(1), ca.Box.unit(3))},
        {"policy": ("fixed", {"decision": [2.0, 2.0]})},
        {"policy": ("fixed", {"colour": "red"})},
        {"policy": Own(None, None, 100, None)},
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
    assert 0 < sum(b.asked for b in run.bins(2)) <= 2000
    alone = ca.simulate("fixed", WORLD, horizon=100, rng=0)
    assert np.isnan(alone.standard_error).all()
    assert alone.table().dicts()[0]["std error"] is None


def test_the_bins_of_a_result_have_counted_what_was_asked_and_told() -> None:
    """The same as the bins of a policy that was asked and told one by one."""
    run = ca.simulate("static-kwsa", WORLD, horizon=2000, rng=0)
    assert sum(b.asked for b in run.bins()) == 2000
    for one in run.bins():
        assert one.asked == one.told


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
from continuarm.core.state import ROWS_USED
world = ca.problem("quadratic", dx=10, dy=2)
policy = ca.AdaptiveKWSA(world.context, world.decision, depth=4, curvature=world.curvature)
run = ca.simulate(policy, world, horizon=1_000_000, rng=0, checkpoints=1)
peak = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
print(peak, int(run.policies[0].life.model.state.counts[ROWS_USED]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    kilobytes, rows = map(int, done.stdout.split())
    assert rows > 100_000
    assert kilobytes < 1_000_000
