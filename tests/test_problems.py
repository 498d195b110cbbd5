"""One contract for every world of the registry, and the registry itself."""

import importlib.util
import itertools
import json
from functools import cache, partial
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numba
import numpy as np
import pytest

import continuarm as ca
from continuarm.core.compiling import Array
from continuarm.errors import SettingsError
from continuarm.problems import (
    Problem,
    fingerprint,
    problem,
    problem_names,
    register_problem,
    registry,
    source_hash,
)
from continuarm.problems import worlds as package
from continuarm.problems.curvature import curvature_at_best
from continuarm.testing.problem import (
    check_best_decision,
    check_contexts,
    check_curvature,
    check_gradient,
    check_optimum_is_flat,
    check_payoffs,
    check_refusals,
    points,
)

NAMED: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in problem_names("named")),
    ("hard", {"dx": 3, "dy": 4, "cells": 3, "seed": 5}),
    ("quadratic", {"dx": 0, "dy": 1}),
    ("quadratic", {"dx": 3, "dy": 6, "condition": 1000.0, "curvature": 0.1, "seed": 4}),
    ("quadratic", {"dx": 1, "dy": 8, "rotation": False}),
    ("linear-demand", {"dx": 0, "dy": 1}),
    ("linear-demand", {"dx": 4, "dy": 8, "seed": 2}),
    ("logit-demand", {"dx": 0, "dy": 1}),
    ("logit-demand", {"dx": 3, "dy": 2, "seed": 3}),
]
OTHERS = [
    (name, dict[str, Any]()) for name in problem_names() if name not in problem_names("named")
]


CONTRACT = (
    check_contexts,
    check_best_decision,
    check_payoffs,
    check_refusals,
    check_gradient,
    check_optimum_is_flat,
    check_curvature,
)


def identity(case: tuple[str, dict[str, Any]]) -> str:
    return " ".join([case[0], *(f"{key}={value}" for key, value in case[1].items())])


@cache
def made(name: str, **settings: Any) -> Problem:
    """The world, compiled once for all tests."""
    return problem(name, **settings)


@pytest.fixture
def world(request: pytest.FixtureRequest) -> Problem:
    name, settings = request.param
    return made(name, **settings)


@pytest.mark.parametrize("world", NAMED + OTHERS, ids=identity, indirect=True)
class TestEveryWorld:
    @pytest.mark.parametrize("check", CONTRACT)
    def test_it_keeps_the_contract(self, world: Problem, check: Any) -> None:
        check(world)

    def test_it_is_compiled_and_knows_its_curvature(self, world: Problem) -> None:
        assert world.functions.compiled
        assert world.curvature is not None


@pytest.mark.parametrize("world", NAMED, ids=identity, indirect=True)
class TestNamedProblems:
    """What those with settings promise beyond the contract."""

    def test_the_contract_with_less_tolerance(self, world: Problem) -> None:
        check_payoffs(world, draws=4_000)
        check_best_decision(world, tolerance=1e-12)
        check_gradient(world, relative=0.0)

    def test_the_best_decision_is_interior(self, world: Problem) -> None:
        best, _ = world.best_many(points(world, 50)[0])
        assert ((world.decision.low < best) & (best < world.decision.high)).all()
        assert world.has_gradient

    def test_the_curvatures_bound_the_hessian(self, world: Problem) -> None:
        """Minus the Hessian on the unit cube, by differences of the gradient.

        Between the points of the grid on which the logits' curvatures are looked for, the
        smallest may be missed by a little.
        """
        assert world.curvature is not None
        assert world.curvature_max is not None
        slack = 0.02 * world.curvature_max if "logit" in world.name else 1e-4
        contexts, decisions = points(world, 20)
        span = world.decision.span
        for x, y in zip(contexts, world.decision.to_unit(decisions), strict=True):
            v = np.clip(y, 1e-5, 1 - 1e-5)
            columns = []
            for i in range(v.size):
                step = 1e-5 * np.eye(v.size)[i]
                up = world.gradient(x, world.decision.from_unit(v + step)) * span
                down = world.gradient(x, world.decision.from_unit(v - step)) * span
                columns.append((down - up) / 2e-5)
            eigenvalues = np.linalg.eigvalsh((np.array(columns) + np.array(columns).T) / 2)
            assert eigenvalues[0] > world.curvature - slack
            assert eigenvalues[-1] < world.curvature_max + slack

    def test_the_optimum_found_numerically_is_the_declared_one(self, world: Problem) -> None:
        unknown = Problem(
            context=world.context,
            decision=world.decision,
            mean_payoff=world.sources.mean_payoff,
        )
        contexts, _ = points(world, 200)
        found, declared = unknown.best_many(contexts)[1], world.best_many(contexts)[1]
        np.testing.assert_allclose(found, declared, atol=1e-9)


def own(**changes: Any) -> Problem:
    """A sound problem, or one that is not."""

    def mean_payoff(x: Array, y: Array) -> Any:
        return -((y[0] - 0.5 * x[0]) ** 2)

    def best_decision(x: Array) -> Any:
        return np.array([0.5 * x[0]])

    def gradient(x: Array, y: Array) -> Any:
        return np.array([x[0] - 2.0 * y[0]])

    return Problem(
        context=ca.Box.unit(1),
        decision=ca.Box.unit(1),
        **{
            "mean_payoff": mean_payoff,
            "best_decision": best_decision,
            "gradient": gradient,
            **changes,
        },
    )


@cache
def sound() -> Problem:
    return own()


@pytest.mark.parametrize(
    ("check", "changes"),
    [
        (check_contexts, {"contexts": lambda _, n: np.random.default_rng().random((n, 1))}),
        (check_best_decision, {"best_decision": lambda x: np.array([0.501 * x[0] + 1e-4])}),
        (check_payoffs, {"sample_payoff": lambda x, y, rng: 0.1 * rng.standard_normal()}),
        (check_gradient, {"gradient": lambda x, y: np.array([x[0] - 2.001 * y[0]])}),
        (check_optimum_is_flat, {"best_decision": lambda x: np.array([0.5 * x[0] + 1e-6])}),
        (check_curvature, {"curvature": 2.0, "curvature_max": 1.0}),
    ],
)
def test_the_contract_notices_what_is_wrong(check: Any, changes: dict[str, Any]) -> None:
    check(sound())
    with pytest.raises(AssertionError):
        check(own(**changes))


def test_the_two_communities_of_the_paper() -> None:
    world = made("two-communities", noise=0.5)
    assert world.noise == 0.5
    assert world.mean_payoff([0.1], [0.7, 0.4]) == pytest.approx(-(0.3**2) - 0.2**2)
    assert world.mean_payoff([0.9], [0.7, 0.4]) == pytest.approx(-(0.1**2) - (0.4 - 1 / 3) ** 2)
    best, _ = world.best_many(np.linspace(0, 1, 1001)[:, None])
    low, high = best.min(axis=0), best.max(axis=0)
    np.testing.assert_allclose(low, [0.439, 0.272], atol=5e-4)
    np.testing.assert_allclose(high, [0.667, 0.5], atol=5e-4)


def test_orange_juice_is_the_world_that_was_fitted() -> None:
    from importlib.resources import files

    data = json.loads((files("continuarm.problems") / "orange_juice.json").read_text("utf-8"))
    world = made("orange-juice")
    assert "bayesm" in data["provenance"]
    for store in data["stores"]:
        prices = world.best_decision(store["demographics"])
        np.testing.assert_allclose(prices, store["best_prices"], atol=2e-6)
        odds = np.exp(store["appeal"] - store["price_sensitivity"] * prices)
        payoff = (prices - data["unit_costs"]) @ odds / (1 + odds.sum())
        assert world.best_payoff(store["demographics"]) == pytest.approx(payoff, abs=2e-6)


@pytest.mark.parametrize("dx", [0, 1, 3])
@pytest.mark.parametrize("dy", [1, 2, 4])
def test_every_seed_of_the_demand_problems_is_sound(dx: int, dy: int) -> None:
    """Best prices inside the box at the corners, concave, and probabilities that are ones."""
    corners = np.array(list(itertools.product([0.0, 1.0], repeat=dx))).reshape(2**dx, dx)
    for seed in range(40):
        logit = problem("logit-demand", dx=dx, dy=dy, seed=seed)
        linear = problem("linear-demand", dx=dx, dy=dy, seed=seed)
        assert logit.curvature is not None
        assert logit.curvature > 0
        for x in corners:
            for world in (logit, linear):
                best = world.sources.best_decision
                assert best is not None
                world.decision.point(best(x))
    ends, rng = (linear.decision.low, linear.decision.high), np.random.default_rng(0)
    for x in corners:
        for p in itertools.product(*zip(*ends, strict=True)):
            margins = [linear.payoff(x, p, rng) for _ in range(400)]
            mean = linear.mean_payoff(x, p)
            error = np.std(margins) / 20
            assert abs(float(np.mean(margins)) - mean) < 6 * max(float(error), 0.01)


def test_the_curvature_at_the_best_decision() -> None:
    assert curvature_at_best(made("rotated-100")) == pytest.approx(1.0, rel=1e-3)
    assert curvature_at_best(made("newsvendor")) == pytest.approx(0.4 / 0.6, rel=0.06)


class TestRegistry:
    def test_importing_a_theme_makes_no_problem(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Problem, "__init__", None)
        for theme in Path(package.__file__).parent.glob("[a-z]*.py"):
            assert loaded(tmp_path / theme.name, theme.read_text("utf-8")).WORLDS

    def test_names_and_tags(self) -> None:
        assert len(problem_names()) == len(set(problem_names())) == 80
        assert len(problem_names("suite")) == 53
        others = set(problem_names()) - set(problem_names("suite"))
        apart = [problem_names(tag) for tag in ("street", "shops", "starts", "wide")]
        assert others == {"quadratic", "drawn"}.union(*apart)
        assert len(problem_names("unseen")) == 12
        assert set(problem_names("unseen")) < set(problem_names("suite"))
        assert {name for name, _ in NAMED} == set(problem_names("named"))
        tags = "'drawn', 'named', 'shops', 'starts', 'street', 'suite', 'unseen', 'wide'"
        with pytest.raises(SettingsError, match=rf"one of \[{tags}\], but got"):
            problem_names("seen")

    def test_every_world_has_its_name(self) -> None:
        assert [made(name).name for name in problem_names()] == problem_names()

    def test_the_suite_spans_what_it_says(self) -> None:
        suite = [made(name) for name in problem_names("suite")]
        assert {world.context.dim for world in suite} >= {1, 2, 5, 10}
        assert {world.decision.dim for world in suite} >= {1, 2, 3, 5, 10, 20, 30, 50}

    def test_names_and_settings_are_checked(self) -> None:
        with pytest.raises(SettingsError, match=r"must be one of .*, but got 'twocommunities'"):
            problem("twocommunities")
        rule = r"takes the settings \['noise'\], but got \['dy'\]"
        with pytest.raises(SettingsError, match=rule):
            problem("two-communities", dy=3)
        for name, setting in (("communities-quiet", "noise"), ("kink", "dy"), ("sine-5", "dy")):
            with pytest.raises(
                SettingsError, match=rf"takes the settings \[\], but got \['{setting}'"
            ):
                problem(name, **{setting: 1})

    @pytest.mark.parametrize(
        ("name", "bad"),
        [
            ("hard", {"dx": 0}),
            ("hard", {"dx": 9, "cells": 100}),
            ("quadratic", {"condition": 0.5}),
            ("quadratic", {"condition": "much"}),
            ("quadratic", {"dy": 0}),
            ("quadratic", {"dx": "abc"}),
            ("quadratic", {"dy": 2.5}),
            ("linear-demand", {"dy": 0}),
            ("logit-demand", {"dy": 6}),
            ("two-communities", {"noise": -1}),
            ("two-communities", {"noise": "loud"}),
        ],
    )
    def test_a_bad_setting_is_refused(self, name: str, bad: dict[str, Any]) -> None:
        with pytest.raises(SettingsError, match=r"must .*, but got"):
            problem(name, **bad)

    def test_an_own_world_is_found_like_the_others(self) -> None:
        kept = own()
        register_problem("shop", lambda *, noise=0.1: kept.with_noise(noise), tags=["mine"])
        assert problem_names("mine") == ["shop"]
        assert problem_names()[-1] == "shop"
        world = problem("shop", noise=0.3)
        assert (world.name, world.noise, kept.name) == ("shop", 0.3, "problem")
        with pytest.raises(SettingsError, match=r"shop takes the settings \['noise'\], but got"):
            problem("shop", price=3)
        assert fingerprint("shop") == fingerprint(registry._entries["shop"].make)

    def test_a_maker_may_take_any_setting_or_keep_its_problem(self) -> None:
        kept = own()
        register_problem("any", lambda **settings: kept)
        assert problem("any", colour="red").name == "any"
        assert kept.name == "problem"

    def test_what_cannot_be_registered(self) -> None:
        def nothing() -> Any:
            return None

        for name in ("kink", "", 3):
            with pytest.raises(SettingsError, match="a name that is free is needed, but got"):
                register_problem(name, nothing)  # type: ignore[arg-type]
        with pytest.raises(SettingsError, match="`make` must be a function, but got 3"):
            register_problem("mine", 3)  # type: ignore[arg-type]
        with pytest.raises(SettingsError, match="`tags` must be a sequence of texts, but got"):
            register_problem("mine", nothing, tags="tag")
        register_problem("mine", nothing)
        register_problem("mine", nothing)  # once more the same
        with pytest.raises(SettingsError, match="must return a Problem, but got None"):
            problem("mine")


@cache
def theme_text(theme: str) -> str:
    return (Path(package.__file__).parent / f"{theme}.py").read_text("utf-8")


def fingerprints_of(theme: str, text: str, folder: Path) -> dict[str, str]:
    """The fingerprints of a theme's worlds when its file reads like this."""
    folder.mkdir(exist_ok=True)
    module = loaded(folder / f"{theme}.py", text)
    return {name: fingerprint(entry.make) for name, entry in module.WORLDS.items()}


def loaded(path: Path, text: str) -> ModuleType:
    path.write_text(text, "utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


QUADRATICS = set(package.quadratics.WORLDS) - {"turning-valley", "nearly-flat"}
EDITS = [
    ("shapes", "0.0025 + gap", "0.0026 + gap", {"kink"}),
    ("shapes", "partial(log_utility, 2, 5)", "partial(log_utility, 2, 6)", {"log-utility-5"}),
    ("quadratics", "condition=4.0", "condition=5.0", {"plane"}),
    ("quadratics", "REACH = 0.4", "REACH = 0.3", QUADRATICS),
    ("quadratics", "seed: int = 0", "seed: int = 1", QUADRATICS),
    ("demand", "0.6 + 0.1 * np.sin", "0.6 + 0.2 * np.sin", {"linear-demand"}),
    ("logit", "total = coefficients[0]", "total = 0.0", {"logit-demand", "orange-juice"}),
    ("logit", "linspace(0.0, 1.0, 9)", "linspace(0.0, 1.0, 8)", {"logit-demand", "orange-juice"}),
    ("logit", '"minute_maid"', '"minute-maid"', {"orange-juice"}),
    ("purchases", "y[0] * chance(x, y)\n", "y[0] * 1.0\n", {"purchase", "rare-purchase"}),
]


REFERRING = """
from functools import partial
from pathlib import Path
import numba
import numpy as np
SCALES = (1.0, [2.0, {"three": 3.0}])
TABLE = np.arange(3)
DATA = Path(__file__).with_name("data.txt")
def inner(x): return x + 1
@numba.njit
def helper(x): return inner(x)
HELPERS = {"one": partial(helper, 1)}
def unused(x): return 7
def twice(function): return lambda x: 2 * function(x)
def last(x): return x
doubled = twice(last)
def make(start=TABLE[0]):
    def mean(x, y): return HELPERS["one"]() + SCALES[0] + doubled(x)
    return mean, TABLE, DATA.read_text(), make
"""


class Maker:
    def __init__(self, noise: float) -> None:
        self.noise = noise

    def __call__(self) -> Problem:
        return own(noise=self.noise)


class TestFingerprint:
    def test_worlds_differ(self) -> None:
        assert len({fingerprint(name) for name in problem_names()}) == len(problem_names())

    def test_nothing_is_made_or_compiled(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Problem, "__init__", None)
        monkeypatch.setattr(numba.core.dispatcher.Dispatcher, "compile", None)
        for name in problem_names():
            assert len(fingerprint(name)) == 64

    @pytest.mark.parametrize("theme", ["shapes", "quadratics", "logit"])
    def test_another_world_in_the_file_changes_none(self, theme: str, tmp_path: Path) -> None:
        added = "def another() -> Problem:\n    return Problem()\n\n\n"
        text = theme_text(theme).replace("WORLDS: Entries = {", added + "WORLDS: Entries = {")
        text = text.replace("\n__all__ =", "\nMORE = 3\n\n__all__ =")
        text += '\nWORLDS["another"] = Entry(another, ())\n'
        found = fingerprints_of(theme, text, tmp_path)
        assert found.pop("another")
        assert found == {name: fingerprint(name) for name in found}

    @pytest.mark.parametrize(("theme", "old", "new", "changed"), EDITS)
    def test_an_edit_changes_those_that_use_it(
        self, theme: str, old: str, new: str, changed: set[str], tmp_path: Path
    ) -> None:
        assert theme_text(theme).count(old) == 1
        found = fingerprints_of(theme, theme_text(theme).replace(old, new), tmp_path)
        assert {name for name in found if found[name] != fingerprint(name)} == changed

    def test_the_sources_that_count(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Those of the package's functions, but none of the core, of Problem or of NumPy."""
        read: list[CodeType] = []

        def source(code: CodeType) -> bytes:
            read.append(code)
            return b""

        monkeypatch.setattr(source_hash, "_source", source)
        fingerprint("purchase")
        fingerprint("quadratic")
        places = {(Path(code.co_filename).stem, code.co_name) for code in read}
        assert places == {
            ("purchases", "purchase"),
            ("purchases", "_paid_or_not"),
            ("building", "unit_problem"),
            ("building", "compiled_helper"),
            ("curvature", "with_curvature"),
            ("curvature", "curvature_at_best"),
            ("logit", "lambert"),
            ("quadratics", "quadratic"),
            ("quadratics", "_best"),
            ("checks", "whole"),
            ("checks", "number"),
            ("checks", "flag"),
        }

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ('"three": 3.0', '"three": 4.0'),
            ("np.arange(3)", "np.arange(3) * 1.0"),
            ("return x + 1", "return x + 2"),
            ("partial(helper, 1)", "partial(helper, 2)"),
            ("2 * function(x)", "3 * function(x)"),
            ("def last(x): return x", "def last(x): return -x"),
            ("start=TABLE[0]", "start=TABLE[1]"),
        ],
    )
    def test_what_a_function_refers_to_counts(self, old: str, new: str, tmp_path: Path) -> None:
        """A constant, an array, a compiled helper and what that calls, a closure, a default."""
        assert REFERRING.count(old) == 1
        edited = loaded(tmp_path / "edited.py", REFERRING.replace(old, new))
        expected = fingerprint(loaded(tmp_path / "world.py", REFERRING).make)
        assert fingerprint(edited.make) != expected
        edited = loaded(tmp_path / "unused.py", REFERRING.replace("return 7", "return 8"))
        assert fingerprint(edited.make) == expected

    def test_the_bytes_of_a_data_file_count(self, tmp_path: Path) -> None:
        found = []
        for data in ("one", "two", "one"):
            (tmp_path / "data.txt").write_text(data)
            found.append(fingerprint(loaded(tmp_path / "world.py", REFERRING).make))
        assert found[0] == found[2] != found[1]

    def test_helpers_of_ones_own_package_count(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.syspath_prepend(str(tmp_path))
        found = []
        for name, factor in (("mine_one", 1), ("mine_two", 1), ("mine_three", 2)):
            (tmp_path / name).mkdir()
            helpers = f"def scaled(x): return {factor} * x\ndef other(x): return {name!r}\n"
            make = f"from {name} import helpers\ndef make(): return helpers.scaled(3)\n"
            (tmp_path / name / "__init__.py").write_text("")
            (tmp_path / name / "helpers.py").write_text(helpers)
            (tmp_path / name / "worlds.py").write_text(make)
            found.append(fingerprint(importlib.import_module(f"{name}.worlds").make))
        assert found[0] == found[1] != found[2]

    def test_a_function_without_source(self) -> None:
        found = []
        for text in ("lambda: [1 + x for x in A]", "lambda: [2 + x for x in A]"):
            found.append(
                [fingerprint(eval(text, {"A": a, "__name__": "m"})) for a in ((1,), (2,))]
            )
        assert len({*found[0], *found[1]}) == 4

    def test_a_maker_may_be_an_object_or_a_class(self) -> None:
        assert fingerprint(Maker(1.0)) == fingerprint(Maker(1.0)) != fingerprint(Maker(2.0))
        assert fingerprint(Maker) != fingerprint(Maker(1.0))  # type: ignore[arg-type]

    def test_what_is_no_function_is_refused(self) -> None:
        with pytest.raises(SettingsError, match=r"the problem must be one of .*, but got 'no'"):
            fingerprint("no")
        with pytest.raises(SettingsError, match=r"such as \['two-communities'.*got 'two-comunit"):
            fingerprint("two-comunities")
        with pytest.raises(SettingsError, match="a function is needed for its source, but got 3"):
            fingerprint(3)  # type: ignore[arg-type]
        assert fingerprint(partial(own, noise=1.0)) != fingerprint(partial(own, noise=2.0))


def test_drawn_worlds_differ_and_are_sound() -> None:
    shapes = set()
    for seed in range(8):
        world = ca.problem("drawn", seed=seed)
        ca.testing.check_problem(world)
        shapes.add((world.context.dim, world.decision.dim, round(world.noise, 6)))
    assert len(shapes) == 8
    one, two = (ca.problem("drawn", seed=3).mean_payoff(*at) for at in [_a_point(3)] * 2)
    assert one == two


def _a_point(seed: int) -> tuple[Any, Any]:
    world = ca.problem("drawn", seed=seed)
    rng = np.random.default_rng(0)
    return rng.random(world.context.dim), rng.random(world.decision.dim)
