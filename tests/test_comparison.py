"""Policies compared: paired ratios, the best in hindsight, the command, and the suite."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import continuarm as ca
from continuarm.cli import cli
from continuarm.comparison import Entrant, compare, parse, ratio
from continuarm.errors import SettingsError
from continuarm.problems.suite import SUITE, UNSEEN
from continuarm.problems.worlds import curvature_at_best

WORLDS = {"two-communities": ca.problem("two-communities")}


def test_a_policy_with_settings_is_read_with_all_combinations() -> None:
    name, settings = parse("adaptive-kwsa width=0.1|0.2 split_after=text|lipschitz depth=3")
    assert name == "adaptive-kwsa"
    assert len(settings) == 4
    assert settings[1] == {"width": 0.1, "split_after": "lipschitz", "depth": 3}
    assert parse("recommended") == ("recommended", ({},))
    assert parse("static-kwsa start='[0.1, 0.2]'")[1] == ({"start": [0.1, 0.2]},)
    for wrong in ("", "adaptive-kwsa width", "adaptive-kwsa =3"):
        with pytest.raises(SettingsError, match="is needed"):
            parse(wrong)
    for wrong in ("quadratic dy=1 dy=2", "quadratic dy='1"):
        with pytest.raises(SettingsError, match="must be"):
            parse(wrong)


def test_a_policy_of_ones_own_is_given_each_horizon_and_every_setting(tmp_path: Path) -> None:
    asked: list[tuple[int, int]] = []

    def make(world: ca.Problem, *, a: int) -> Any:
        def policy(context: Any, decision: Any, horizon: int, rng: Any) -> Any:
            asked.append((a, horizon))
            return ca.Fixed([0.1 * a, 0.5]).bound_to(world)

        return policy

    own = Entrant("own", make, ({"a": 1}, {"a": 5}))
    run = compare([own], WORLDS, [20, 50], replications=1)
    assert sorted(asked) == [(1, 20), (1, 50), (5, 20), (5, 50)]
    assert run.scores[0].settings == {"a": 5}


def test_a_ratio_is_paired_and_its_interval_covers() -> None:
    """Over many trials the 95 % interval holds the true ratio about 95 times in a hundred."""
    rng, inside = np.random.default_rng(0), 0
    for _ in range(1000):
        seed = rng.normal(10, 2, 12)
        low, high = ratio(0.5 * seed + rng.normal(0, 0.3, 12), seed + rng.normal(0, 0.3, 12))[1:]
        inside += low <= 0.5 <= high
    assert 925 <= inside <= 970
    same = np.array([3.0, 5.0, 9.0])
    np.testing.assert_allclose(ratio(2 * same, same), 2.0)  # paired: no spread is left
    assert np.isnan(ratio(same, np.zeros(3))).all()
    assert np.isnan(ratio(same[:1], same[:1])[1])


def test_the_best_in_hindsight_counts_at_each_horizon() -> None:
    widths = tuple({"width": w} for w in (0.05, 0.4))
    entrants = [
        Entrant("both", "static-kwsa", widths),
        *(Entrant(str(s["width"]), "static-kwsa", (s,)) for s in widths),
    ]
    run = compare(entrants, WORLDS, [200, 3000], replications=3)
    for horizon in (200, 3000):
        scores = {s.policy: s for s in run.scores if s.horizon == horizon}
        best = min(("0.05", "0.4"), key=lambda name: scores[name].regret.mean())
        np.testing.assert_array_equal(scores["both"].regret, scores[best].regret)
        assert scores["both"].settings == {"width": float(best)}


def test_every_policy_meets_the_seeds_of_simulate() -> None:
    """Those that want the horizon are given each; the others run once and are read on the way."""
    entrants = [Entrant("recommended", "recommended"), Entrant("adaptive-kwsa", "adaptive-kwsa")]
    run = compare(entrants, WORLDS, [3000, 300], replications=2, seed=4, baseline="recommended")
    assert [s.horizon for s in run.scores] == [300, 300, 3000, 3000]
    for score in run.scores:
        alone = ca.simulate(
            score.policy, "two-communities", horizon=score.horizon, replications=2, rng=4
        )
        np.testing.assert_array_equal(score.regret, alone.regret[:, -1])
    lines = str(run.table()).splitlines()
    assert lines[0].split()[:4] == ["problem", "decisions", "policy", "regret"]
    assert len(lines) == 5


def test_the_command_prints_a_table_or_json_and_draws(tmp_path: Path) -> None:
    figure = tmp_path / "ratios.svg"
    common = ["compare", "--problem", "two-communities noise=0.2", "--horizon", "500"]
    common += ["--replications", "2", "--policy", "fixed decision=[0.5,0.5]"]
    common += ["--policy", "static-kwsa width=0.1|0.3"]
    shown = CliRunner().invoke(cli, [*common, "--plot", str(figure)])
    assert shown.exit_code == 0, shown.output
    assert "static-kwsa width=0.1|0.3" in shown.output
    assert figure.read_text().startswith("<?xml")
    printed = CliRunner().invoke(
        cli, [*common, "--json", "--baseline", "fixed decision=[0.5,0.5]"]
    )
    report = json.loads(printed.output)
    assert report["baseline"] == "fixed decision=[0.5,0.5]"
    fixed, static = report["scores"]
    assert fixed["ratio"] == 1.0
    assert static["ratio"] == pytest.approx(static["regret_mean"] / fixed["regret_mean"])
    assert static["settings"] in ({"width": 0.1}, {"width": 0.3})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policy", "recommended", "--baseline", "oracle"], "the baseline must be one of"),
        (["--policy", "recommended", "--policy", "recommended"], "each policy must be given once"),
        (["--policy", "recommended width=0.1"], "takes the settings"),
        (["--policy", "static-kwsa width=0.1|0.7"], "`1e-06 <= width <= 0.5` must hold"),
        (["--problem", "quadratic dy=1|2"], "one value each"),
        (["--problem", "nowhere"], "the problem must be one of"),
        (["--policy", "static-kwsa name=1"], "takes the settings"),
        (["--problem", "quadratic name=1"], "takes the settings"),
        (["--baseline", ""], "the baseline must be one of"),
        (["--plot", "ratios.txt"], "must end in one of"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_runs(
    arguments: list[str], message: str, monkeypatch: Any
) -> None:
    monkeypatch.setattr("continuarm.comparison.simulate", None)
    done = CliRunner().invoke(cli, ["compare", *arguments])
    assert message in str(done.exception)


def test_problems_of_the_suite_by_name_with_late_payoffs() -> None:
    """The same numbers as `simulate` gives with that feedback."""
    arguments = ["compare", "--problem", "plane", "--policy", "recommended", "--policy", "fixed"]
    arguments += ["--horizon", "200", "--replications", "2", "--delay", "9", "--lost", "0.1"]
    done = CliRunner().invoke(cli, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    found = {score["policy"]: score["regret"] for score in json.loads(done.stdout)["scores"]}
    world = SUITE["plane"]().with_feedback(delay=9, lost=0.1)
    run = ca.simulate("recommended", world, horizon=200, replications=2, rng=0)
    assert found["recommended"] == run.regret[:, -1].tolist()


def test_the_suite_spans_what_it_says() -> None:
    worlds = {name: make() for name, make in SUITE.items()}
    assert len(worlds) >= 25
    assert len(UNSEEN) >= 8
    assert {w.context.dim for w in worlds.values()} >= {1, 2, 5, 10}
    assert {w.decision.dim for w in worlds.values()} >= {1, 2, 3, 5, 10, 20, 30, 50}
    assert all(w.curvature is not None for w in worlds.values())


def test_no_decision_of_a_problem_of_the_suite_is_better_than_its_best() -> None:
    """In Python, without compiling all problems."""
    for make in SUITE.values():
        world = make()
        mean, best_of = world.sources.mean_payoff, world.sources.best_decision
        assert best_of is not None
        rng = np.random.default_rng(0)
        for x in world.draw_contexts(rng, 10):
            best = np.asarray(best_of(x), np.float64)
            height = mean(x, best)
            for scale in (1.0, 0.1, 0.01):
                near = world.decision.to_unit(best) + scale * rng.uniform(-1, 1, (5, len(best)))
                points = world.decision.from_unit(np.clip(near, 0.0, 1.0))
                assert max(mean(x, point) for point in points) <= height + 1e-9


def test_the_curvature_at_the_best_decision() -> None:
    assert curvature_at_best(SUITE["rotated-100"]()) == pytest.approx(1.0, rel=1e-3)
    assert curvature_at_best(SUITE["newsvendor"]()) == pytest.approx(0.4 / 0.6, rel=0.06)
