"""What a stranger tries first: what is meant works, and the rest is answered in one line."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pytest

import continuarm as ca
from continuarm.core.compiling import Array, code_of, compiled
from continuarm.core.learners.protocol import register
from continuarm.core.request import ALONE, Request
from continuarm.errors import InputError, PolicyError, SavedFileError, SettingsError
from tests.test_learners import SamplerConfig
from tests.test_policies import CONTEXT, DECISION, POLICIES, learn, make

UNIT = ca.Box.unit(1)
CLIMBER = ca.KieferWolfowitz(step=1.0, width=0.3)


def in_one_line(error: type[Exception], match: str, call: Callable[[], object]) -> None:
    with pytest.raises(error, match=match) as raised:
        call()
    assert "\n" not in str(raised.value)


def test_a_maker_with_bare_options_is_told_the_seed() -> None:
    def maker(context: ca.Box, decision: ca.Box, **options: Any) -> ca.Policy:
        return ca.SurfaceSampling(context, decision, **options)

    runs = [ca.simulate(maker, "two-communities", horizon=50, rng=0) for _ in range(2)]
    np.testing.assert_array_equal(runs[0].regret, runs[1].regret)


@pytest.mark.parametrize(
    ("partition", "learner", "rule"),
    [
        (CLIMBER, ca.Grid(4), "`partition` must be a partition, but got KieferWolfowitz"),
        (CLIMBER, CLIMBER, "`partition` must be a partition, but got KieferWolfowitz"),
        (ca.Grid(4), ca.Grid(4), "`learner` must be a learner, but got Grid"),
    ],
)
def test_swapped_parts_are_refused(partition: Any, learner: Any, rule: str) -> None:
    in_one_line(
        SettingsError, rule, lambda: ca.Policy(UNIT, UNIT, partition=partition, learner=learner)
    )


class UnwrittenConfig(NamedTuple):
    dy: int
    spread: float


@dataclass(frozen=True)
class Unwritten:
    def configured(self, dx: int, dy: int) -> UnwrittenConfig:
        return UnwrittenConfig(dy, 1.0)


class SlicingConfig(NamedTuple):
    dy: int
    spread: float


@dataclass(frozen=True)
class Slicing:
    def configured(self, dx: int, dy: int) -> SlicingConfig:
        return SlicingConfig(dy, 1.0)


@compiled
def _decide(cfg: Any, row: Array, pool: Array, request: Request, work: Array, y: Array) -> int:
    y[:] = [request.xi[0]]
    return ALONE


def test_a_learner_without_code_says_what_is_missing() -> None:
    rule = r"must be registered, as in `register\(UnwrittenConfig, Learner.of\(globals\(\)\)\)`"
    in_one_line(
        SettingsError,
        rule,
        lambda: ca.Policy(UNIT, UNIT, partition=ca.Grid(4), learner=Unwritten()),
    )


def test_a_learner_that_numba_cannot_compile_is_named_with_the_reason() -> None:
    register(SlicingConfig, replace(code_of(SamplerConfig), decide=_decide))
    policy = ca.Policy(UNIT, UNIT, partition=ca.Grid(4), learner=Slicing())
    rule = "Grid and Slicing must be code that Numba compiles, but got a function that makes "
    rule += r"an array or a list at .*test_mistakes.py \(\d+\)"
    in_one_line(PolicyError, rule, lambda: policy.ask([0.5]))
    assert policy.stats().asked == 0


@pytest.mark.parametrize("box", [(100_000, 1), (1, 500_000)])
def test_a_surface_of_gradients_that_is_too_large_is_refused(box: tuple[int, int]) -> None:
    boxes = ca.Box.unit(box[0]), ca.Box.unit(box[1])
    in_one_line(
        SettingsError, "has at most 1000000 numbers, but got", lambda: ca.RobbinsMonro(*boxes)
    )


def test_files_and_folders_that_are_not_there(tmp_path: Path) -> None:
    policy, gone = make("StaticKWSA"), tmp_path / "gone"
    for error in (FileNotFoundError, SavedFileError):
        in_one_line(
            error, f"folder of a saved .* '{gone}' does not", lambda: policy.save(gone / "policy")
        )
        in_one_line(error, f"must exist, but '{gone}' does not", lambda: ca.load(gone))
    in_one_line(SavedFileError, "that can be read, but", lambda: ca.load(tmp_path))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, dict])
def test_a_table_of_one_row_is_that_row_by_name(frame: Any) -> None:
    policy = make("SurfaceSampling")
    learn(policy, 200)
    by_name = {"income": 1e5, "age": 30.0}
    row = frame({name: [value] for name, value in by_name.items()})
    decision = policy.ask(row)
    np.testing.assert_array_equal(decision.context, [30.0, 1e5])
    np.testing.assert_array_equal(policy.recommend(row), policy.recommend(by_name))
    done = frame({"bid": [1.0], "fee": [3.0], "price": [2.0]})
    policy.tell(decision, 1.0, value=done)
    rows = frame({"income": [1e5, 2e5], "age": [30.0, 40.0]})
    for verb in (policy.ask, policy.recommend, policy.explain):
        in_one_line(InputError, "one row is needed, but got 2 rows", partial(verb, rows))


@pytest.mark.parametrize("context", [None, 5, 2.5])
def test_a_reader_answers_what_is_no_context_in_one_line(context: Any) -> None:
    reader = ca.Reader(make("StaticKWSA").export())
    in_one_line(ValueError, "2 numbers are needed, but got", lambda: reader.decide(context))


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("within", [{"fee": (3.0, 3.0)}, {"bid": (1, 2), "price": (9.0, 9.0)}])
def test_limits_by_name_hold_for_some_coordinates_and_may_fix_them(
    name: str, within: dict[str, tuple[float, float]], tmp_path: Path
) -> None:
    policy, happened = make(name), list[Any]()
    learn(policy, 300)
    before = policy.snapshot()
    policy.listen(happened.append)
    low, high = DECISION.low.copy(), DECISION.high.copy()
    for coordinate, edges in within.items():
        low[list(DECISION.names).index(coordinate)] = edges[0]
        high[list(DECISION.names).index(coordinate)] = edges[1]
    for x in CONTEXT.from_unit(np.random.default_rng(3).random((20, 2))):
        decision = policy.ask(x, within=within)
        for value in (decision.value, policy.recommend(x, within=within)):
            assert ((low <= value) & (value <= high)).all()
        assert policy.explain(x, within=within)["payoffs"] >= 0
        policy.save(tmp_path / "policy")
        again = ca.load(tmp_path / "policy")
        assert again.snapshot() == policy.snapshot()
        policy.tell(decision, 1.0, gradient=[0.1] * 3 if policy.uses_gradient else None)
    replica = ca.Policy.from_snapshot(before)
    for event in happened:
        replica.apply(ca.events.from_plain(ca.events.to_plain(event)))
    assert replica.snapshot() == policy.snapshot()


@pytest.mark.parametrize(
    ("within", "rule"),
    [
        ({"fee": (0.5, 2.0)}, r"`1.0 <= low <= high <= 9.0` must hold for fee"),
        ({"fee": (3.0, 2.0)}, "must hold for fee"),
        ({"fee": (2.0, float("nan"))}, "must hold for fee"),
        ({"fee": 2.0}, "must hold for fee"),
        ({"fee": ("a", "b")}, "must hold for fee"),
        ({"fees": (2.0, 3.0)}, r"must be among \['price', 'fee', 'bid'\], but got 'fees'"),
        ({}, "`within` must be a Box, or such as"),
        ([1.0, 2.0], "`within` must be a Box, or such as"),
    ],
)
def test_limits_by_name_that_are_no_limits_are_refused(within: Any, rule: str) -> None:
    policy = make("SurfaceSampling")
    for verb in (policy.ask, policy.recommend, policy.explain):
        in_one_line(InputError, rule, partial(verb, [30.0, 1e5], within=within))
    unnamed = ca.SurfaceSampling(UNIT, UNIT)
    in_one_line(InputError, "a Box with names", lambda: unnamed.ask([0.5], within={"0": (0, 1)}))


def test_a_log_for_boxes_without_names_says_that_names_are_needed() -> None:
    log = {"0": [0.1], "payoff": [1.0]}
    in_one_line(
        InputError,
        "got boxes without names that share",
        lambda: ca.SurfaceSampling(UNIT, UNIT).learn_from(log),
    )


MEANT: dict[str, Any] = {"horizons": [100], "replications": 2}


@pytest.mark.parametrize(
    ("policies", "problems", "options", "rule"),
    [
        ("recommended", ["plane"], {}, "a sequence or {label: ...} is needed"),
        ([], ["plane"], {}, "a sequence or {label: ...} is needed"),
        (["nope"], ["plane"], {}, "the policy must be one of .* but got 'nope'"),
        (["fixed"], ["nope"], {}, "the problem must be one of .* but got 'nope'"),
        (["fixed"], [3], {}, "a problem or its name is needed, but got 3"),
        (["fixed", "fixed"], ["plane"], {}, "must be given once"),
        (["fixed"], ["plane"], {"horizons": 100}, "`horizons` must be a sequence"),
        (["fixed"], ["plane"], {"horizons": [0]}, "`horizons` must be a whole number >= 1"),
        (["fixed"], ["plane"], {"replications": 0}, "`replications` must be"),
        (["fixed"], ["plane"], {"seed": "x"}, "`seed` must be"),
        (["fixed"], ["plane"], {"baseline": "x"}, "the baseline must be one of"),
        (["fixed"], ["plane"], {"workers": -1}, "`workers` must be"),
        (["fixed"], ["plane"], {"folder": "/dev/null/x"}, "the folder must be writable"),
        (["fixed"], ["plane"], {"cluster": "x"}, "cluster"),
        ([ca.SurfaceSampling(UNIT, UNIT)], ["plane"], {}, "must have the same .* box"),
        (["static-kwsa bims=3"], ["plane"], {}, "takes the settings .* but got"),
    ],
)
def test_mistakes_in_a_comparison_are_one_line(
    policies: Any, problems: Any, options: dict[str, Any], rule: str
) -> None:
    in_one_line(SettingsError, rule, lambda: ca.compare(policies, problems, **(MEANT | options)))
