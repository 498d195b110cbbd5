"""What the first day can cost, from a log and on the command line; what the page shows of it."""

import csv
import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import continuarm as ca
from continuarm.cli import main
from continuarm.cli.planning import read_columns
from continuarm.core.compiling import Array
from continuarm.errors import ContinuarmError, InputError
from continuarm.lab.figures.first_day import cost_curve
from continuarm.planning.old_log import fit
from tests.worlds import ROOT

PAGE = ROOT / "docs" / "first-day.md"
AGE, PRICE = ca.Box([18], [90], names=["age"]), ca.Box([1], [9], names=["price"])


# Logs


def log_of(n: int, *, noise: float, spread: float, seed: int = 0) -> dict[str, Array]:
    """Of a price that follows the age, and varies; curvature 8, the rule's payoff at its best."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(18.0, 90.0, n)
    deviation = spread * rng.uniform(-1.0, 1.0, n)
    payoff = 2.0 + 0.01 * age - 4.0 * deviation**2 + noise * rng.normal(size=n)
    return {"age": age, "price": 1.0 + 8.0 * (0.2 + 0.005 * age + deviation), "margin": payoff}


def of_log(log: dict[str, Array], **options: Any) -> ca.FirstDay:
    return ca.first_day_of_log(log, payoff="margin", context=AGE, decision=PRICE, **options)


def test_a_log_with_spread_gives_the_numbers_of_its_shop() -> None:
    log = log_of(20_000, noise=0.3, spread=0.2)
    found = fit(
        AGE.to_unit(log["age"][:, None]), PRICE.to_unit(log["price"][:, None]), log["margin"]
    )
    assert found.noise == pytest.approx(0.3, rel=0.03)
    assert found.mean == pytest.approx(np.mean(log["margin"]))
    assert abs(found.curvature - 8.0) < 4.0 * found.curvature_error
    assert found.deviation[0] == pytest.approx(0.2 / np.sqrt(3.0), rel=0.03)
    assert found.bends
    assert not found.leans
    day = of_log(log)
    assert (day.dimensions, day.contexts, day.curvature) == (1, 1, found.curvature)
    assert "The log shows a curvature of" in str(day)
    assert day.flattest == found.curvature - 2.0 * found.curvature_error


def test_the_standard_error_of_a_logs_curvature_is_right() -> None:
    """Over 200 logs estimates scatter as each says; their own scatter is known to 5 %."""
    found = []
    for seed in range(200):
        log = log_of(300, noise=0.5, spread=0.2, seed=seed)
        unit = PRICE.to_unit(log["price"][:, None])
        found.append(fit(AGE.to_unit(log["age"][:, None]), unit, log["margin"]))
    scatter = np.std([one.curvature for one in found])
    assert np.mean([one.curvature_error for one in found]) == pytest.approx(scatter, rel=0.25)


def test_a_log_that_shows_no_curvature_says_so_and_errs_on_the_safe_side() -> None:
    day = of_log(log_of(300, noise=1.0, spread=0.05))
    assert day.curvature > 8.0
    assert day.flattest is None
    assert day.seen_at_the_latest is None
    words = " ".join(str(day).split())
    assert "does not show a curvature" in words
    assert "decisions until seen at least these" in words


def test_purchases_bound_the_curvature_by_their_lowest_payoff() -> None:
    """No price earns less than nothing, so the range is at most the mean."""
    rng = np.random.default_rng(0)
    log = log_of(2000, noise=0.0, spread=0.03)
    log["margin"] = np.where(rng.random(2000) < 0.1, 15.0, 0.0)
    day = of_log(log)
    assert day.curvature <= 8.0 * np.mean(log["margin"])


def test_a_log_that_already_shows_an_improvement_says_so() -> None:
    log = log_of(5000, noise=0.3, spread=0.1)
    assert "it shows none" in " ".join(str(of_log(log)).split())
    log["margin"] += log["price"] - 0.04 * log["age"]
    assert "it shows one: teach it with `learn_from`" in " ".join(str(of_log(log)).split())


def test_a_rule_without_spread_needs_the_range() -> None:
    log = log_of(300, noise=0.5, spread=0.0)
    with pytest.raises(InputError, match="'price' follows from the context"):
        of_log(log)
    day = of_log(log, range=1.0)
    assert day.curvature == 8.0
    assert "The curvature comes from the range that was given." in str(day)


@pytest.mark.parametrize(
    ("log", "message"),
    [
        (log_of(5, noise=0.5, spread=0.1), "a log of at least 15 rows is needed, but got 5"),
        (log_of(50, noise=0.5, spread=0.1) | {"margin": np.ones(50)}, "whose payoffs differ"),
        (
            log_of(50, noise=0.5, spread=0.1) | {"margin": -np.arange(50.0)},
            "whose mean payoff is above 0 is needed, but got -24.5",
        ),
        ({"age": np.ones(3), "price": np.ones(3)}, "'margin' is missing"),
    ],
)
def test_a_log_that_cannot_say_anything_is_refused(log: dict[str, Array], message: str) -> None:
    with pytest.raises(ContinuarmError, match=re.escape(message)):
        of_log(log)


# The command


def call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["continuarm", "first-day", *arguments])
    code = 0
    try:
        main()
    except SystemExit as exit_:
        code = int(exit_.code or 0)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def write_csv(path: Path, log: dict[str, Array]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["note", *log])
        writer.writerows(["old", *row] for row in zip(*log.values(), strict=True))


def test_the_page_shows_what_its_commands_print(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = re.findall(
        r"```sh\n(continuarm first-day .*?)```\n\n```text\n(.*?)```", PAGE.read_text(), re.S
    )
    assert shown
    for command, output in shown:
        arguments = shlex.split(command.replace("\\\n", " "))[2:]
        code, out, err = call(monkeypatch, capsys, *arguments)
        assert (code, err) == (0, "")
        assert out == output


def test_every_equation_that_the_code_cites_is_on_the_page() -> None:
    numbered = {int(n) for n in re.findall(r"\(F(\d+)\)$", PAGE.read_text(), re.M)}
    assert numbered == set(range(1, 14))
    sources = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    cited = {int(n) for n in re.findall(r"eq\. (?:F\d+ (?:to|and) )?F(\d+)", sources)}
    assert {2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13} <= cited <= numbered


def test_json_of_the_command_is_the_librarys_with_percents_as_parts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = "--noise 4.5 --range 1 --mean 1.5 --improvement 10 --budget 2 --contexts 2 --json"
    code, out, err = call(monkeypatch, capsys, *arguments.split())
    day = ca.first_day(noise=4.5, range=1.0, mean=1.5, improvement=0.1, budget=0.02, contexts=2)
    assert (code, err) == (0, "")
    assert json.loads(out) == json.loads(json.dumps(day.to_dict()))


def test_the_command_reads_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = log_of(500, noise=0.5, spread=0.2)
    write_csv(tmp_path / "log.csv", log)
    arguments = ("--log", str(tmp_path / "log.csv"), "--payoff", "margin")
    boxes = ("--context", "age:18:90", "--decision", "price:1:9", "--json")
    code, out, err = call(monkeypatch, capsys, *arguments, *boxes)
    assert (code, err) == (0, "")
    assert json.loads(out) == json.loads(json.dumps(of_log(log).to_dict()))
    code, out, err = call(monkeypatch, capsys, *arguments, "--decision", "price:1:9")
    assert (code, err) == (0, "")
    assert "The log has 500 rows" in out  # and no context


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--noise 2", "`--range` is needed without `--log`"),
        ("--noise x --range 1", "'x' is not a valid float"),
        ("--noise nan --range 1", "but got nan"),
        ("--noise 2 --range 1 --decisions 0", "a whole number >= 1 is needed, but got '0'"),
        ("--noise 2 --range 1 --budget 1", "`mean` is needed with a budget"),
        ("--noise 2 --range 1 --payoff z", "`--payoff` means nothing without `--log`"),
        ("--noise 2 --range 1 --plot a.doc", "a figure's file must end in one of"),
        ("--log log.csv --payoff margin", "`--decision` is needed with `--log`"),
        ("--log log.csv --payoff margin --decision price", "`name:low:high` is needed"),
        ("--log log.csv --payoff margin --decision price:9:1", "`low < high` must hold"),
        ("--log log.csv --payoff margin --decision price:1:2", "`1.0 <= price <= 2.0` must hold"),
        ("--log log.csv --payoff margin --decision fee:1:2", "'fee' is missing"),
        ("--log log.csv --payoff note --decision price:1:9", "but line 2 has 'old'"),
        ("--log log.csv --payoff margin --decision price:1:9 --range -1", "but got -1.0"),
        ("--log log.csv --payoff margin --decision price:1:9 --improvement 0", "but got 0.0"),
        ("--log none.csv --payoff margin --decision price:1:9", "must be a CSV file"),
        (
            "--log log.csv --payoff margin --decision price:1:9 --noise 1",
            "`--noise` means nothing with `--log`",
        ),
    ],
)
def test_bad_input_of_the_command_is_one_line(
    tmp_path: Path,
    arguments: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_csv(tmp_path / "log.csv", log_of(50, noise=0.5, spread=0.1))
    monkeypatch.chdir(tmp_path)
    code, out, err = call(monkeypatch, capsys, *arguments.split())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("continuarm: ")
    assert message in err


def test_the_figure_draws_the_curve_and_where_the_improvement_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "day.svg"
    code, out, _ = call(monkeypatch, capsys, *f"--noise 2 --range 1 --plot {file}".split())
    assert (code, out.splitlines()[-1]) == (0, f"figure: {file}")
    assert "<svg" in file.read_text()
    day = ca.first_day(noise=2.0, range=1.0)
    last = day.curve().rows[-1]
    assert last[0] > day.seen_after.even
    assert last[1:] == pytest.approx([last[0] * cost for cost in day.per_decision])
    late = ca.first_day(noise=50.0, range=1.0)
    assert late.curve().rows[-1][0] == 5000.0
    assert "(beyond this figure)" in cost_curve(late).axes[0].get_title(loc="left")
    lines = cost_curve(day).axes[0].get_lines()
    dots = [np.asarray(line.get_xdata())[0] for line in lines if line.get_marker() == "o"]
    assert dots == pytest.approx(list(day.seen_after))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("age,price,price,margin\n20,5,6,1\n", "different names, but got ['price'] twice"),
        ("age,price,margin\n20,5,1\n30,5,1,7\n", "line 3 of the log has more cells than its head"),
    ],
)
def test_a_log_whose_cells_are_ambiguous_is_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        read_columns(str(path), ["age", "price", "margin"])
    assert said in str(refused.value)


def test_a_price_that_never_moved_shows_no_improvement() -> None:
    log = log_of(500, noise=0.3, spread=0.0)
    assert not any("could show" in note for note in of_log(log, range=1.0).notes)


def test_payoffs_beyond_all_measure_are_refused() -> None:
    rng = np.random.default_rng(0)
    table = {"x": rng.random(200), "y": rng.random(200), "z": 1e299 * rng.standard_normal(200)}
    boxes: Any = {
        "context": ca.Box([0], [1], names=["x"]),
        "decision": ca.Box([0], [1], names=["y"]),
    }
    with pytest.raises(InputError, match=r"within ±1e\+100, but got"):
        ca.first_day_of_log(table, payoff="z", **boxes)
