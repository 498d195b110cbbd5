"""The report: its tables are computed from the runs, its figures show them."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

from continuarm.errors import SettingsError
from continuarm.lab.measures import Interval
from continuarm.paper import reproduction
from continuarm.paper.reproduction import claims, figures, measures, verdicts
from continuarm.paper.reproduction.plan import (
    CORRECTED,
    DIMENSIONS,
    PRINTED,
    STUDIES,
    UNBIASED,
    half_decades,
    uniform_fits,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A quick reproduction of everything."""
    folder = tmp_path_factory.mktemp("reproduction")
    reproduction.reproduce(folder, quick=True)
    return folder


@pytest.fixture(scope="module")
def runs(folder: Path) -> polars.DataFrame:
    return polars.read_parquet(folder / "runs.parquet")


def synthetic(slopes: dict[str, float], horizons: list[int]) -> polars.DataFrame:
    """Runs with known slopes and small, paired noise."""
    rng = np.random.default_rng(0)
    rows = []
    for seed in range(6):
        shared = rng.normal(0, 0.01)
        for policy, slope in slopes.items():
            rows += [
                {
                    "policy": policy,
                    "problem": "two-communities",
                    "horizon": horizon,
                    "seed": seed,
                    "regret": horizon**slope * np.exp(shared),
                }
                for horizon in horizons
            ]
    return polars.DataFrame(rows)


def test_slopes_and_ratios_are_recovered() -> None:
    table = synthetic({"static": 0.7, "uniform": 0.8}, half_decades(3, 7))
    found = measures.slope(measures.curve(table, "static", "two-communities"), 10**4)
    assert found.low <= 0.7 + 1e-9
    assert found.high >= 0.7 - 1e-9
    assert found.value == pytest.approx(0.7, abs=1e-6)
    ratio = measures.ratio(table, "static", "uniform", "two-communities", 10**7)
    assert ratio.value == pytest.approx(10**-0.7)
    assert ratio.high - ratio.low < 1e-9  # paired: the shared noise cancels
    curve = measures.curve(table, "static", "two-communities")
    np.testing.assert_allclose(curve.half, curve.error * 2.5706, rtol=1e-4)  # t, 5 degrees


def test_claims_follow_from_the_runs() -> None:
    slopes = {
        "static": 0.66, "adaptive": 0.66, "uniform": 0.9,
        "static, alternate": 0.6, "adaptive, alternate": 0.55, "uniform, tuned": 0.8,
        "static, central": 0.6, "adaptive, central": 0.6,
    }  # fmt: skip
    table = synthetic(slopes, half_decades(3, 7))
    seconds = {"static": 2.0, "adaptive": 4.0, "uniform": 1.0}
    plain = claims.claims_table(table, seconds).rows
    verdicts = [(row[3], row[5]) for row in plain]
    assert verdicts == [
        ("yes", "yes, with room"),  # static near 2/3: 0.66, 0.6
        ("yes", "yes, with room"),
        ("no", "yes"),  # uniform near 4/5: 0.9, 0.8
        ("yes", "yes"),  # static ahead of uniform
        ("yes", "yes"),
        ("no", "yes"),  # adaptive ahead of static: equal, ahead
        ("no", ""),  # uniform slower than static: 0.5
        ("no", ""),  # adaptive only slightly slower: 2
    ]


def growing(powers: dict[str, tuple[float, float]], seeds: int) -> polars.DataFrame:
    """Runs whose regret is `dy^p T^q`, for each policy `(p, q)`."""
    rows = [
        {
            "policy": policy,
            "problem": f"dy = {dy}",
            "horizon": horizon,
            "seed": seed,
            "regret": dy**p * horizon**q,
        }
        for policy, (p, q) in powers.items()
        for dy in DIMENSIONS
        for horizon in half_decades(4, 5.5)
        for seed in range(seeds)
    ]
    return polars.DataFrame(rows)


def test_what_the_title_claims_has_a_verdict() -> None:
    rates = {name: 0.66 for name in (*PRINTED, "static, alternate", "adaptive, alternate")}
    table = synthetic(rates | {"uniform, tuned": 0.8}, half_decades(3, 7))
    dimension = growing(
        {
            "static": (1.2, 0.66), "static, alternate": (1.0, 0.6),
            "adaptive": (0.9, 0.75), "adaptive, alternate": (1.06, 0.7),
        },
        8,
    )  # fmt: skip
    seconds = {"static": 1.0, "adaptive": 1.2, "uniform": 2.0}
    rows = claims.claims_table(table, seconds, dimension).rows[6:10]
    assert [(row[0].partition(":")[0], row[3], row[5]) for row in rows] == [
        ("static", "yes", "yes, with room"),  # T^0.67 at dy = 50: 0.66, 0.6
        ("static", "no", "yes"),  # dy^1: 1.2, 1
        ("adaptive", "no", "yes"),  # 0.75, 0.7
        ("adaptive", "yes, with room", "no"),  # 0.9, 1.06
    ]
    assert all("at most" in row[0] for row in rows)


def test_few_seeds_say_so_where_the_interval_contains_the_limit() -> None:
    rng = np.random.default_rng(0)
    table = synthetic({"static": 0.7, "uniform": 0.7}, half_decades(3, 5))
    noisy = table.with_columns(
        polars.Series(
            "regret", table["regret"].to_numpy() * np.exp(rng.normal(0, 0.3, len(table)))
        )
    )
    found = measures.ratio(noisy, "static", "uniform", "two-communities", 10**5)
    assert found.low < 1 < found.high
    assert verdicts.below_one(found, few=True) == "too few seeds to say"
    assert verdicts.below_one(found, few=False) == "no"
    wide = Interval(0.7, 0.6, 0.8)
    assert verdicts.at_most(wide, 2 / 3, few=True) == "too few seeds to say"
    assert verdicts.at_most(wide, 2 / 3, few=False) == "yes, not surely"
    assert verdicts.at_most(Interval(0.75, 0.7, 0.8), 2 / 3, few=False) == "no, not surely"
    assert verdicts.at_most(Interval(0.75, 0.72, 0.78), 2 / 3, few=False) == "no"
    assert verdicts.at_most(Interval(0.5, 0.45, 0.55), 2 / 3, few=True) == "yes, with room"


def test_seeds_are_said_in_words() -> None:
    plain = synthetic({"static": 0.7}, half_decades(3, 4))
    assert measures.seeds_in_words(plain) == "6 seeds"
    fewer = plain.filter((polars.col("horizon") < 10**4) | (polars.col("seed") < 2))
    assert measures.seeds_in_words(fewer) == "6 seeds up to T = 3,162, and 2 beyond"


def test_every_curve_is_there(runs: polars.DataFrame) -> None:
    assert set(runs["study"]) == set(STUDIES)
    regret = runs.filter(polars.col("study") == "regret")
    assert set(regret["policy"]) == {*PRINTED, *CORRECTED, *UNBIASED}
    assert set(regret["horizon"]) == set(half_decades(3, 5))
    assert runs["regret"].is_finite().all()
    assert (runs["regret"] > 0).all()


def test_the_full_plan_is_what_was_promised() -> None:
    (full,) = STUDIES["regret"]().full
    assert full.horizons == half_decades(3, 7)
    assert full.horizons[-1] == 10**7
    assert all(n == (20 if t <= 10**6 else 5) for t, n in full.replications.items())
    dims = {next(iter(e.problems)) for e in STUDIES["dimension"]().full}
    assert dims == {f"dy = {dy}" for dy in (1, 2, 5, 10, 20, 50)}
    assert uniform_fits(2, 10**5)
    assert not uniform_fits(50, 10**6)


def test_the_report_agrees_with_the_stored_runs(folder: Path, runs: polars.DataFrame) -> None:
    """Recompute the claims from runs.parquet; every number must stand in the report."""
    regret = runs.filter(polars.col("study") == "regret")
    seconds, _ = reproduction.command.timing(folder, quick=True)
    dimension = runs.filter(polars.col("study") == "dimension")
    table = claims.claims_table(regret, seconds, dimension)
    assert "too few seeds to say" in {cell for row in table.rows for cell in row}
    report = (folder / "report.html").read_text()
    for row in table.text():
        for cell in row:
            assert cell.replace("<", "&lt;") in report
    for name in ("dimension", "lower-bound", "contexts"):
        study = runs.filter(polars.col("study") == name)
        maker = {
            "dimension": claims.dimension_table,
            "lower-bound": claims.lower_bound_table,
            "contexts": claims.context_table,
        }[name]
        for row in maker(study).text():
            assert row[-1] in report


def test_the_report_opens_offline(folder: Path) -> None:
    report = (folder / "report.html").read_text()
    assert report.count("<svg") == len(STUDIES)
    outside = re.findall(r'(?:src|href|url\()="?(https?:[^"]*)', report)
    assert outside == []
    ids = re.findall(r'\bid="([^"]+)"', report)
    assert len(ids) == len(set(ids))
    colours = re.findall(r"(?:fill|stroke|stop-color): *#([\w-]+)", report)
    assert len(colours) > 100
    assert all(re.fullmatch(r"[0-9a-f]{6}|[0-9a-f]{3}", colour) for colour in colours)
    targets = set(re.findall(r'xlink:href="#([^"]+)"', report))
    targets |= set(re.findall(r"url\(#([^)]+)\)", report))
    assert targets <= set(ids)


def test_figures_come_in_three_formats(folder: Path) -> None:
    for name in STUDIES:
        for form, start in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
            assert (folder / f"{name}.{form}").read_bytes().startswith(start)


def test_figures_compare_at_a_glance(runs: polars.DataFrame) -> None:
    """Panels of one quantity share a scale, rates are the paper's fractions, legends lie below."""
    names: list[str] = []
    for name in ("regret", "noise", "lower-bound"):
        figure = figures.draw(name, runs.filter(polars.col("study") == name))
        figure.draw_without_rendering()
        left, right = figure.axes
        assert left.get_ylim() == right.get_ylim()
        for axes in figure.axes:
            legend = axes.get_legend()
            assert legend is not None
            assert legend.get_window_extent().y1 < axes.get_window_extent().y0
            names += [text.get_text() for text in legend.get_texts()]
    slopes = [name.partition(":")[0] for name in names if name.startswith("slope")]
    assert slopes == [
        *("slope 2/3", "slope 4/5"),  # the experiment of Section 5, as printed
        *("slope 2/3", "slope 3/5"),  # and with the corrections
        *("slope 3/5", "slope 2/3"),  # the lower bound, dx = 1
        *("slope 2/3", "slope 3/4"),  # and dx = 2
    ]


def test_csv_and_parquet_hold_the_same(folder: Path, runs: polars.DataFrame) -> None:
    csv = polars.read_csv(folder / "runs.csv")
    assert csv.columns == runs.columns
    assert csv.height == runs.height
    np.testing.assert_allclose(csv["regret"], runs["regret"])


def test_a_second_start_does_nothing_again(folder: Path) -> None:
    journal = (folder / "runs.jsonl").read_text()
    table = reproduction.reproduce(folder, quick=True, chosen=["regret"])
    assert (folder / "runs.jsonl").read_text() == journal
    assert table is not None
    assert len(table.rows) == 8


def test_the_progress_bar_ends_where_it_should(folder: Path) -> None:
    seen: list[int] = []
    chosen = ["lower-bound", "contexts"]
    reproduction.reproduce(folder, quick=True, chosen=chosen, progress=seen.append)
    assert sum(seen) == reproduction.total_decisions(chosen, quick=True)


def test_printed_slopes_lie_where_they_were_measured(runs: polars.DataFrame) -> None:
    """Wide enough for 4 seeds up to 10^5: the design's 0.70, 0.70 and 0.91, plus or minus 0.08."""
    regret = runs.filter(polars.col("study") == "regret")
    for policy, expected in (("static", 0.70), ("adaptive", 0.70), ("uniform", 0.91)):
        found = measures.slope(measures.curve(regret, policy, "two-communities"), 10**3)
        assert found.value == pytest.approx(expected, abs=0.08)
    ratio: Any = measures.ratio(regret, "static", "uniform", "two-communities", 10**5)
    assert ratio.high < 0.5


def test_an_unknown_figure_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="the figure must be one of"):
        reproduction.reproduce(tmp_path, chosen=["everything"])
