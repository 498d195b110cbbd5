"""Policies compared: paired ratios, the best in hindsight, the command, and the suite."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import continuarm as ca
from benchmarks import recommended_page
from continuarm.cli import cli
from continuarm.errors import SettingsError
from continuarm.lab.comparison import Choices
from continuarm.lab.figures.plots import ratio_dots
from continuarm.lab.measures import Interval, ratio
from continuarm.lab.specs import parse

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


def test_a_policy_of_ones_own_is_given_each_horizon_and_every_setting() -> None:
    asked: list[tuple[int, int]] = []

    def make(context: ca.Box, decision: ca.Box, *, a: int, horizon: int, rng: Any) -> ca.Fixed:
        asked.append((a, horizon))
        return ca.Fixed(context, decision, value=[0.1 * a, 0.5])

    own = {"own": Choices(make, ({"a": 1}, {"a": 5}))}
    run = ca.compare(own, WORLDS, horizons=[20, 50], replications=1)
    assert sorted(asked) == [(1, 20), (1, 50), (5, 20), (5, 50)]
    assert run.scores[0].settings == {"a": 5}


def test_a_policy_of_ones_own_that_does_not_plan_runs_once() -> None:
    made: list[int] = []

    def make(context: ca.Box, decision: ca.Box, *, a: int) -> ca.Fixed:
        made.append(a)
        return ca.Fixed(context, decision, value=[0.1 * a, 0.5])

    ca.compare({"own": Choices(make, ({"a": 1},))}, WORLDS, horizons=[20, 50], replications=3)
    assert made == [1, 1, 1]


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
    entrants = {"both": Choices("static-kwsa", widths)} | {
        str(s["width"]): ("static-kwsa", s) for s in widths
    }
    run = ca.compare(entrants, WORLDS, horizons=[200, 3000], replications=3)
    for horizon in (200, 3000):
        scores = {s.policy: s for s in run.scores if s.horizon == horizon}
        best = min(("0.05", "0.4"), key=lambda name: scores[name].regret.mean())
        np.testing.assert_array_equal(scores["both"].regret, scores[best].regret)
        assert scores["both"].settings == {"width": float(best)}


def test_every_policy_meets_the_seeds_of_simulate() -> None:
    """Those that want the horizon are given each; the others run once and are read on the way."""
    policies = ["recommended", "adaptive-kwsa"]
    worlds = ["two-communities"]
    run = ca.compare(
        policies, worlds, horizons=[3000, 300], replications=2, seed=4, baseline="recommended"
    )
    assert [s.horizon for s in run.scores] == [300, 300, 3000, 3000]
    for score in run.scores:
        alone = [
            ca.simulate(score.policy, "two-communities", horizon=score.horizon, rng=seed)
            for seed in (4, 5)
        ]
        assert score.regret.tolist() == [result.regret[0, -1] for result in alone]
    lines = str(run.table()).splitlines()
    assert lines[0].split()[:4] == ["problem", "decisions", "policy", "regret"]
    assert len(lines) == 5


def test_a_comparison_is_a_view_on_an_experiment() -> None:
    policies, worlds = ["static-kwsa", "fixed"], ["two-communities", "quadratic"]
    run = ca.compare(policies, worlds, horizons=[100, 300], replications=3, seed=2)
    table = ca.Experiment(
        policies=policies, problems=worlds, horizons=[100, 300], replications=3, seed=2
    ).run(workers=1)
    assert len(run.scores) == 8
    for score in run.scores:
        rows = table.filter(policy=score.policy, problem=score.problem, horizon=score.horizon)
        assert score.regret.tolist() == rows.sort("seed")["regret"].to_list()


def small(folder: Path | None = None, **options: Any) -> dict[str, Any]:
    """A comparison with a policy that plans, one that does not, and one with two settings."""
    run = ca.compare(
        ["recommended", "static-kwsa width=0.1|0.3", "fixed"],
        ["two-communities noise=0.2", "quadratic"],
        horizons=[100, 400],
        replications=2,
        seed=3,
        folder=folder,
        **options,
    )
    return run.report()


def test_where_it_runs_changes_no_number() -> None:
    alone = small(workers=1)
    assert len(alone["scores"]) == 12
    assert small(workers=2, cluster="threads") == alone
    assert small() == alone
    assert small(workers=2, cluster=None) == alone


def test_a_comparison_that_was_interrupted_does_only_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = small(tmp_path, workers=1)
    journal = tmp_path / "runs.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    # recommended and fixed run once, static-kwsa for each horizon with each of its two settings
    assert len(lines) == 2 * 2 * (1 + 1 + 2 * 2)
    with monkeypatch.context() as patch:
        patch.setattr("continuarm.lab.experiment.simulate", None)
        assert small(tmp_path, workers=1) == whole
        assert small(tmp_path, workers=2, cluster="threads") == whole
        assert small(tmp_path, workers=2, cluster=None) == whole
    assert journal.read_bytes() == b"".join(lines)
    journal.write_bytes(b"".join(lines[:9]))
    assert small(tmp_path, workers=2) == whole
    after = journal.read_bytes().splitlines(keepends=True)
    assert after[:9] == lines[:9]
    assert len(after) == len(lines)
    keys = [json.loads(line.partition(b" ")[2])["key"] for line in after]
    assert len(set(keys)) == len(keys)


def test_other_settings_of_a_maker_are_not_taken_from_the_folder(tmp_path: Path) -> None:
    def make(context: ca.Box, decision: ca.Box, *, a: float) -> ca.Fixed:
        return ca.Fixed(context, decision, value=[a, 0.5])

    for a in (0.1, 0.9):
        own = {"own": Choices(make, ({"a": a},))}
        kept = ca.compare(own, WORLDS, horizons=[50], replications=2, folder=tmp_path)
        alone = ca.compare(own, WORLDS, horizons=[50], replications=2)
        np.testing.assert_array_equal(kept.scores[0].regret, alone.scores[0].regret)


def test_policies_and_problems_without_labels_have_their_own_names() -> None:
    def low(context: ca.Box, decision: ca.Box) -> ca.Fixed:
        return ca.Fixed(context, decision, value=[0.1, 0.1])

    class High(ca.Fixed):
        def __init__(self, context: ca.Box, decision: ca.Box) -> None:
            super().__init__(context, decision, value=[0.9, 0.9])

    world = ca.problem("two-communities")
    middle = ca.Fixed(world.context, world.decision)
    learns = ca.StaticKWSA(world.context, world.decision, bins=2, step=1.0)
    run = ca.compare([low, High, middle, learns], [world], horizons=[50], replications=2)
    assert [s.policy for s in run.scores] == ["low", "High", "Fixed", "StaticKWSA"]
    assert {s.problem for s in run.scores} == {"two-communities"}
    assert len({float(s.regret.sum()) for s in run.scores}) == 4


@pytest.mark.parametrize(
    "bad",
    [
        {"policies": []},
        {"policies": {}},
        {"policies": "fixed"},
        {"policies": 3},
        {"policies": [3]},
        {"policies": {"x": 3}},
        {"policies": {"x": Choices("fixed", ())}},
        {"policies": {"x": Choices(3, ({},))}},
        {"policies": {"x": Choices("fixed", ({"colour": 1},))}},
        {"policies": ["fixed", "fixed"]},
        {"policies": {"x": "best"}},
        {"problems": []},
        {"problems": {}},
        {"problems": "quadratic"},
        {"problems": [3]},
        {"problems": {"x": 3}},
        {"problems": ["quadratic", "quadratic"]},
        {"problems": ["nowhere"]},
        {"horizons": []},
        {"horizons": [0]},
        {"horizons": 5},
        {"replications": 0},
        {"seed": -1},
        {"baseline": "oracle"},
        {"workers": 0},
        {"cluster": "slurm"},
    ],
    ids=str,
)
def test_bad_arguments_are_refused(bad: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("continuarm.lab.experiment.simulate", None)  # before anything runs
    call: dict[str, Any] = {"policies": ["fixed"], "problems": ["quadratic"], "horizons": [10]}
    call |= bad
    with pytest.raises(SettingsError, match=r"but got|but it made"):
        ca.compare(call.pop("policies"), call.pop("problems"), **call)


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
    monkeypatch.setattr("continuarm.lab.experiment.simulate", None)
    done = CliRunner().invoke(cli, ["compare", *arguments])
    assert message in str(done.exception)


def test_problems_of_the_suite_by_name_with_late_payoffs() -> None:
    """The same numbers as `simulate` gives with that feedback."""
    arguments = ["compare", "--problem", "plane", "--policy", "recommended", "--policy", "fixed"]
    arguments += ["--horizon", "200", "--replications", "2", "--delay", "9", "--lost", "0.1"]
    done = CliRunner().invoke(cli, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    found = {score["policy"]: score["regret"] for score in json.loads(done.stdout)["scores"]}
    world = ca.problem("plane").with_feedback(delay=9, lost=0.1)
    runs = [ca.simulate("recommended", world, horizon=200, rng=seed) for seed in (0, 1)]
    assert found["recommended"] == [run.regret[0, -1] for run in runs]


def test_a_list_takes_a_name_with_its_settings() -> None:
    found = ca.compare(
        [("static-kwsa", {"bins": 4}), "fixed"], ["plane"], horizons=[100], replications=2
    )
    assert [score.policy for score in found.scores] == ["static-kwsa bins=4", "fixed"]


def test_the_page_marks_a_limit_that_is_missed_and_names_where_the_centre_costs_less() -> None:
    found = {(0.3, 0.2, 0.4): "holds, not surely", (0.3, 0.25, 0.33): "holds"}
    found |= {(0.36, 0.3, 0.42): "**missed**, not surely", (0.4, 0.36, 0.44): "**missed**"}
    for interval, said in found.items():
        assert recommended_page.verdict(Interval(*interval), 1 / 3) == said
    suite = {
        name: {"scores": [{"policy": "recommended", "regret": regret}]}
        for name, regret in (("plane", [3.0, 5.0]), ("hard", [7.0, 9.0]), ("edge", [6.0, 6.0]))
    }
    centre = {"plane": 3.9, "hard": 8.5, "edge": 5.0}
    assert recommended_page.cheaper_at_the_centre(suite, centre) == "`plane`, `edge`"


def limits_of(rows: list[tuple[str, list[float], list[float]]]) -> list[Any]:
    """The rows of means of what safety costs, for these regrets of ours and of before."""
    found = {
        name: {
            "paired": [
                {"policy": "recommended", "regret": ours},
                {"policy": "before", "regret": before},
            ]
        }
        for name, ours, before in rows
    }
    return [row[-1] for row in recommended_page.safety_tables(found)[0].rows]


def test_the_page_marks_a_mean_or_a_problem_above_its_limit() -> None:
    noisy = ("purchase", [0.7, 0.71, 0.72], [1.0, 1.0, 1.0])
    assert limits_of([noisy, ("plane", [1.0, 1.01, 1.02], [1.0] * 3)]) == ["holds", "holds"]
    assert limits_of([noisy, ("plane", [1.1, 1.11, 1.12], [1.0] * 3)]) == ["holds", "**missed**"]
    one = [noisy, ("plane", [2.0, 2.01, 2.02], [1.0] * 3), ("edge", [0.1, 0.11, 0.12], [1.0] * 3)]
    assert limits_of(one) == ["holds", "**missed**"], "the mean holds, and one is surely above"


def test_figures_say_delay_and_loss_and_two_seeds_have_no_interval(tmp_path: Path) -> None:
    drawn: list[Any] = []

    def keep(groups: Any, labels: Any, baseline: str, path: Path, feedback: str) -> None:
        drawn.append(ratio_dots(groups, labels, baseline, None, feedback).axes[0])

    late = ca.problem("plane").with_feedback(delay=9, lost=0.1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("continuarm.lab.comparison.ratio_dots", keep)
        for problems, seeds in (({"a": late}, 2), ({"a": late, "b": "plane"}, 3)):
            found = ca.compare(
                ["recommended", "fixed"], problems, horizons=[50], replications=seeds
            )
            found.draw(tmp_path / "unused.png")
    few, many = drawn
    assert few.get_title("left") == "baseline: fixed; delay 9, 0.1 of payoffs lost"
    assert "95 %" not in few.get_xlabel()
    assert [len(line) for line in few.collections[0].get_segments()] == [0]
    names = [text.get_text() for text in many.get_yticklabels()]
    assert names == ["b", "a, delay 9, 0.1 of payoffs lost"]
    assert many.get_title("left") == "baseline: fixed"
    assert "95 %" in many.get_xlabel()
    assert [len(line) for line in many.collections[0].get_segments()] == [2, 2]
