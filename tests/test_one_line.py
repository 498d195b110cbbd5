"""The command line answers in one line, whatever a user's file or value does."""

import json
import sys
import warnings
from pathlib import Path

import pytest

from continuarm.cli import main

MINE = """
import numpy as np
import continuarm as ca
UNIT = ca.Box.unit(1)

def mean(x, y):
    return -((y[0] - x[0]) ** 2)

def shop(**more):
    return ca.Problem(**({"context": UNIT, "decision": UNIT, "mean_payoff": mean} | more))

def raising():
    raise RuntimeError("no shop" + chr(10) + "today")

def late():
    def mean(x, y):
        if x[0] > 0.97:
            raise ValueError("too late")
        return -((y[0] - x[0]) ** 2)
    return shop(mean_payoff=mean, best_decision=lambda x: (min(x[0], 0.9),))

def unpaid():
    return shop(sample_payoff=lambda x, y, rng: np.nan if x[0] > 0.97 else 0.1)

def wrong():
    return shop(best_decision=lambda x: (0.0,))

class Fails:
    def __init__(self, context, decision): pass
    def ask(self, context): raise RuntimeError("no idea")
    def tell(self, decision, payoff): pass

def Unmade(context, decision):
    raise RuntimeError("no policy")
"""


def call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str, str]:
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # main sets its own
    monkeypatch.setattr(sys, "argv", ["continuarm", *arguments])
    code = 0
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        try:
            main()
        except SystemExit as exit_:
            code = int(exit_.code or 0)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.mark.parametrize("command", ["simulate", "compare"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--problem", "mine.py:raising"], "mine.py:raising must make a problem, but got"),
        (
            ["--problem", "mine.py:late"],
            "must work at every point of its boxes, but got",
        ),
        (
            ["--problem", "mine.py:unpaid"],
            "the payoff of unpaid must be within ±1e+100, but",
        ),
        (
            ["--policy", "mine.py:Fails"],
            "Fails must decide for every context, but got",
        ),
        (
            ["--policy", "mine.py:Unmade"],
            "Unmade must make a policy for two boxes, but got",
        ),
    ],
)
def test_the_command_line_answers_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    arguments: list[str],
    message: str,
) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    short = ["--horizon", "2000", "--replications", "2"]
    more = ["--policy", "recommended"] if "--problem" in arguments else []
    code, out, err = call(monkeypatch, capsys, command, *short, *arguments, *more)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("continuarm: ")
    assert message in err


def test_a_doubt_is_one_line_beside_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    arguments = ["--problem", "mine.py:wrong", "--policy", "fixed", "--horizon", "100", "--json"]
    code, out, err = call(monkeypatch, capsys, "simulate", *arguments)
    assert code == 0
    assert err.count("\n") == 1
    assert err.startswith("continuarm: warning: no decision may earn more than the best one")
    assert "NaN" not in out
    assert json.loads(out)["regret_mean"][-1] < 0


DEEP = [f"{'[' * depth}{']' * depth}" for depth in (50, 500, 960, 980, 985, 990, 3000)]


@pytest.mark.parametrize("value", ["9" * 5000, *DEEP], ids=lambda value: f"{len(value)}")
@pytest.mark.parametrize(
    "arguments",
    [
        ["simulate", "--set", "ttl=@"],
        ["simulate", "--set", "start=@"],
        ["simulate", "--problem", "quadratic", "--problem-set", "dy=@"],
        ["compare", "--policy", "static-kwsa width=@"],
        ["compare", "--policy", "fixed", "--problem", "quadratic dy=@"],
    ],
    ids=" ".join,
)
def test_values_without_measure_are_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    value: str,
) -> None:
    given = [argument.replace("@", value) for argument in arguments]
    code, out, err = call(monkeypatch, capsys, *given, "--horizon", "10", "--replications", "1")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert len(err) < 2100


def test_the_command_alone_prints_its_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = call(monkeypatch, capsys)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "Usage: continuarm [OPTIONS] COMMAND [ARGS]..."
    assert len(lines) > 8
