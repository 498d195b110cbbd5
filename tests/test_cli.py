"""The command line as a stranger types it."""

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import click
import pytest

from continuarm.cli import cli, main

KEYS = [
    "policy",
    "problem",
    "horizon",
    "replications",
    "seed",
    "settings",
    "checkpoints",
    "regret_mean",
    "regret_std_error",
    "seconds",
    "decisions_per_second",
]


HALF = """
class Half:
    def __init__(self, context, decision, *, rng, height=0.5): self.height = height
    def ask(self, context): return [0.5, self.height]
    def tell(self, decision, payoff): pass
"""


def run(*arguments: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "continuarm", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env={**os.environ, **env}, timeout=300
    )


def simulate(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return run("simulate", "--horizon", "2000", "--replications", "2", *arguments, **more)


def test_json_is_one_object_and_nothing_else() -> None:
    done = simulate("--policy", "static-kwsa", "--seed", "3", "--set", "width=0.3", "--json")
    assert done.returncode == 0
    assert done.stderr == ""
    report = json.loads(done.stdout)
    assert list(report) == KEYS
    assert (report["policy"], report["problem"]) == ("static-kwsa", "two-communities")
    assert (report["horizon"], report["replications"], report["seed"]) == (2000, 2, 3)
    assert report["settings"]["policy"]["width"] == 0.3
    assert report["checkpoints"][-1] == 2000
    assert (
        len(report["regret_mean"]) == len(report["regret_std_error"]) == len(report["checkpoints"])
    )
    assert report["decisions_per_second"] == pytest.approx(4000 / report["seconds"])
    again = json.loads(
        simulate("--policy", "static-kwsa", "--seed", "3", "--set", "width=0.3", "--json").stdout
    )
    assert again["regret_mean"] == report["regret_mean"]


def test_one_replication_has_no_standard_error() -> None:
    report = json.loads(
        run("simulate", "--horizon", "500", "--replications", "1", "--json").stdout
    )
    assert report["regret_std_error"][-1] is None


@pytest.mark.parametrize("text", ["2e3", "2000.0", "2000"])
def test_whole_numbers_may_be_written_as_people_write_them(text: str) -> None:
    report = json.loads(run("simulate", "--horizon", text, "--policy", "fixed", "--json").stdout)
    assert report["horizon"] == 2000


def test_settings_are_json_or_strings() -> None:
    done = simulate(
        "--policy", "adaptive-kwsa", "--set", "probe=alternate", "--set", "depth=2",
        "--set", "split_after=[3, 9]", "--set", "average=true", "--set", "horizon=1e5",
        "--problem", "quadratic", "--problem-set", "dy=3", "--noise", "0.2", "--json",
    )  # fmt: skip
    settings = json.loads(done.stdout)["settings"]
    assert settings["problem"] == {"dy": 3, "noise": 0.2}
    assert settings["policy"]["split_after"] == [3, 9]
    assert settings["policy"]["average"] is True
    assert settings["policy"]["horizon"] == 100_000


def test_a_table_for_people_and_a_figure(tmp_path: Path) -> None:
    done = simulate(cwd=tmp_path)
    assert re.search(r"recommended on two-communities, 2 replications of 2,000", done.stdout)
    assert re.search(r"\n +2,000 +[\d.,]+ +[\d.]+ ", done.stdout)
    both = simulate("--policy", "oracle", "--policy", "fixed", "--plot", "r.svg", cwd=tmp_path)
    assert re.search(r"\noracle +0 +0 +0 +0 ", both.stdout)
    assert both.stdout.endswith("figure: r.svg\n")
    assert "<svg" in (tmp_path / "r.svg").read_text()
    runs = json.loads(simulate("--policy", "oracle", "--policy", "fixed", "--json").stdout)["runs"]
    assert [r["policy"] for r in runs] == ["oracle", "fixed"]


def test_a_problem_and_a_policy_from_files(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        textwrap.dedent(
            """
            import continuarm as ca

            def shop(height=1.0):
                def profit(x, y):
                    return height - (y[0] - x[0]) ** 2
                return ca.Problem(context=ca.Box([0], [1]), decision=ca.Box([0], [2]),
                                  mean_payoff=profit, curvature=8.0)

            ready = shop()

            class Half:
                def __init__(self, context, decision, horizon, rng): pass
                def ask(self, context): return [0.5]
                def tell(self, decision, payoff): pass
            """
        )
    )
    shop = ("--problem", "mine.py:shop", "--problem-set", "height=2")
    for arguments in (shop, ("--problem", "mine.py:ready")):
        report = json.loads(simulate(*arguments, "--json", cwd=tmp_path).stdout)
        assert 0 < report["regret_mean"][-1] < 2000
    half = simulate("--problem", "mine.py:ready", "--policy", "mine.py:Half", cwd=tmp_path)
    assert "mine.py:Half on ready" in half.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--horizon", "0"], "a whole number >= 1 is needed, but got '0'"),
        (["--horizon", "1.5"], "a whole number >= 1 is needed, but got '1.5'"),
        (["--horizon", "many"], "a whole number >= 1 is needed, but got 'many'"),
        (["--horizon", "inf"], "a whole number >= 1 is needed, but got 'inf'"),
        (["--replications", "-1"], "a whole number >= 1 is needed, but got '-1'"),
        (["--seed", "x"], "a whole number >= 0 is needed, but got 'x'"),
        (["--noise", "-1"], "`0 <= noise` must hold, but got -1.0"),
        (["--noise", "nan"], "`0 <= noise` must hold, but got nan"),
        (["--policy", "best"], "the policy must be one of"),
        (["--problem", "best"], "the problem must be one of"),
        (["--set", "colour=red"], "takes the settings"),
        (["--set", "width"], "`key=value` is needed, but got 'width'"),
        (
            ["--policy", "adaptive-kwsa", "--set", "width=wide"],
            "`1e-06 <= width <= 0.5` must hold, but got 'wide'",
        ),
        (
            ["--policy", "adaptive-kwsa", "--set", "split_after=5"],
            "`split_after` must be a sequence of whole numbers",
        ),
        (["--set", "rng=abc"], "`rng` must be a seed or a Generator, but got 'abc'"),
        (
            ["--policy", "adaptive-kwsa", "--set", "depth=600"],
            "`depth <= 50` must hold, but got 600",
        ),
        (["--policy", "static-kwsa", "--set", "bins=1e30"], "`bins <= 1000000000` must hold"),
        (["--horizon", "1e19"], "a whole number >= 1 is needed, but got '1e19'"),
        (["--problem", "quadratic", "--problem-set", "rotation=no"], "must be true or false"),
        (["--problem", "quadratic", "--problem-set", "dx=a"], "`dx` must be a whole number"),
        (["--problem", "linear-demand", "--noise", "0.5"], "takes the settings"),
        (["--plot", "folder.png"], "a figure's folder must exist"),
        (
            ["--policy", "adaptive-kwsa", "--set", "step=null", "--set", "depth=1.5"],
            "`depth` must be a whole number",
        ),
        (["--problem-set", "dy=3"], "takes the settings ['noise'], but got ['dy']"),
        (["--problem", "nowhere.py:p"], "a file is needed, but 'nowhere.py' is not there"),
        (["--problem", "broken.py:p"], "broken.py must import, but got SyntaxError"),
        (["--problem", "raises.py:p"], "raises.py must import, but got ZeroDivisionError"),
        (["--problem", "empty.py:p"], "empty.py must define 'p', but does not"),
        (["--problem", "three.py:p"], "must be a Problem or make one, but got 3"),
        (["--policy", "three.py:p"], "`policy` must be a policy, its name, or a callable"),
        (["--plot", "figure.doc"], "a figure's file must end in one of"),
        (["--plot", "nowhere/figure.png"], "a figure's folder must exist"),
        (["--nonsense"], "No such option"),
        (["extra"], "unexpected extra argument"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    tmp_path: Path,
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "broken.py").write_text("def (")
    (tmp_path / "raises.py").write_text("1 / 0")
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "three.py").write_text("p = 3")
    (tmp_path / "folder.png").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["continuarm", "simulate", "--horizon", "100", *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    printed = capsys.readouterr()
    assert exit_.value.code == 2
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("continuarm: ")
    assert message in printed.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policy", "three.py:p"], "must be a policy, its name, or a callable"),
        (["--policy", "three.py:p a=1|2"], "must be a policy, its name, or a callable"),
        (["--policy", "half.py:Half colour=1"], "the settings"),
        (["--problem", "three.py:p"], "must be a Problem or make one, but got 3"),
        (["--problem", "nowhere.py:p"], "a file is needed, but 'nowhere.py' is not there"),
        (["--cluster", "slurm"], 'must be "local", "ray"'),
        (["--workers", "0"], "a whole number >= 1 is needed, but got '0'"),
        (["--output", "three.py/folder"], "the folder must be writable"),
        (["--delay", "-1"], "a whole number >= 0 is needed, but got '-1'"),
        (["--lost", "1.5"], "must hold, but got 1.5"),
    ],
)
def test_bad_input_of_compare_is_one_line_and_exit_code_2(
    tmp_path: Path,
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "three.py").write_text("p = 3")
    (tmp_path / "half.py").write_text(HALF)
    monkeypatch.chdir(tmp_path)
    short = ["--horizon", "50", "--replications", "2", "--policy", "fixed"]
    monkeypatch.setattr(sys, "argv", ["continuarm", "compare", *short, *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    printed = capsys.readouterr()
    assert exit_.value.code == 2
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("continuarm: ")
    assert message in printed.err


def test_a_comparison_is_continued_where_it_stopped(tmp_path: Path) -> None:
    """Of a policy in a file, too, with every value of its setting; in threads or one by one."""
    (tmp_path / "half.py").write_text(HALF)
    command = [
        "compare", "--horizon", "50", "--horizon", "100", "--replications", "2", "--json",
        "--policy", "half.py:Half height=0.2|0.6", "--policy", "fixed",
    ]  # fmt: skip
    first = run(*command, "--output", "kept", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    journal = tmp_path / "kept" / "runs.jsonl"
    lines = journal.read_text()
    assert len(lines.splitlines()) == 2 * (2 + 1)  # neither of the two asks for the horizon
    again = run(*command, "--output", "kept", "--workers", "1", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert again.stdout == first.stdout
    assert journal.read_text() == lines
    assert run(*command, "--workers", "1", cwd=tmp_path).stdout == first.stdout
    half = json.loads(first.stdout)["scores"][0]
    assert half["policy"] == "half.py:Half height=0.2|0.6"
    assert half["settings"] in ({"height": 0.2}, {"height": 0.6})


def test_the_exit_code_reaches_the_shell() -> None:
    done = simulate("--policy", "best")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1


def test_every_command_and_option_has_help() -> None:
    assert cli.help
    for command in cli.commands.values():
        assert command.help
        for option in command.params:
            if isinstance(option, click.Argument):  # the text says what it is
                assert f"{option.metavar} is" in command.help
            else:
                assert getattr(option, "help", None), option.name
    assert "Usage" in run("--help").stdout
    assert run("simulate", "--help").returncode == 0
    assert run("--version").stdout.startswith("continuarm, version 0.")


def test_help_names_what_there_is_by_name() -> None:
    """Help does not load the registries, so the names are written out there."""
    code = """
from continuarm import cli
from continuarm.live.named import names
from continuarm.problems import problem_names
named = ", ".join(problem_names("named"))
print(cli.POLICY_NAMES == ", ".join(names()), cli.PROBLEM_NAMES == named)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True True\n"


def test_help_does_not_wait_for_numba() -> None:
    code = "import sys; from continuarm.cli import cli; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_figure_without_matplotlib_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "matplotlib.py").write_text("raise ImportError")
    done = simulate("--plot", "figure.png", PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    assert 'pip install "continuarm[plot]"' in done.stderr
