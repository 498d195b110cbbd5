"""What benchmarks/contexts.py measures with; docs/contexts.md has the numbers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import continuarm as ca
from benchmarks.contexts_page import key_of, of_two, rivals
from benchmarks.contexts_run import all_matter, regrets, wider


@pytest.mark.parametrize("name", ["two-communities", "linear-demand"])
def test_more_contexts_that_do_not_matter_change_no_payoff(name: str) -> None:
    plain, more = ca.problem(name), wider(name, 10)
    rng = np.random.default_rng(0)
    contexts = more.draw_contexts(rng, 20)
    assert contexts.shape == (20, plain.context.dim + 10)
    for x in contexts:
        own, y = x[: plain.context.dim], plain.decision.from_unit(rng.random(plain.decision.dim))
        assert more.mean_payoff(x, y) == plain.mean_payoff(own, y)
        np.testing.assert_array_equal(more.best_decision(x), plain.best_decision(own))


def test_all_contexts_matter_alike() -> None:
    world = all_matter(3)
    x = np.array([0.1, 0.4, 0.8])
    np.testing.assert_allclose(world.best_decision(x), world.best_decision(x[[2, 0, 1]]))
    assert not np.allclose(world.best_decision(x), world.best_decision([0.1, 0.4, 0.7]))


def test_seeds_are_those_of_compare_and_can_be_added() -> None:
    wanted = {"world": ["suite", "scalar"], "policy": ["recommended", {}], "marks": [100, 300]}
    both = regrets(wanted | {"first": 0, "count": 2})
    assert regrets(wanted | {"first": 1, "count": 1}) == both[1:]
    compared = ca.compare({"it": "recommended"}, ["scalar"], horizons=[300], replications=2)
    assert compared.scores[0].regret.tolist() == [run[-1] for run in both]


def test_versions_are_paired_by_seed() -> None:
    world: list[Any] = ["suite", "scalar"]
    found = {key_of("now", world, ("recommended", {})): [[1.0], [2.0], [3.0]]}
    found[key_of("before", world, ("recommended", {}))] = [[2.0], [4.0]]
    now, before = of_two(found, world)
    assert now.tolist() == [1.0, 2.0]
    assert before.tolist() == [2.0, 4.0]


def test_the_rivals_regrets_are_read_from_the_comparison() -> None:
    page = Path(__file__).parents[1] / "docs" / "comparison.md"
    found = rivals(page.read_text())
    assert len(found) > 40
    assert set(found) <= set(ca.problem_names("suite"))
    assert min(found.values()) > 0.0
    assert "communities-drowned" not in found  # outside the mean
