"""Policies whose decisions are guarded: spaced values, coupled limits, limits of a request."""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import continuarm as ca
from continuarm.core.compiling import Array
from continuarm.core.request import FREE
from continuarm.errors import InputError, PolicyError, SettingsError
from continuarm.live.policy import Policy
from continuarm.testing import check_policy, check_problem

UNIT = ca.Box.unit(1)
SHOP = ca.Box([1.0, 0.0], [9.0, 4.0], names=["price", "fee"], spacing={"price": 0.05})
COUPLED = ca.Polytope(SHOP, ["fee <= price - 1", "price + fee <= 8"])
Guarded = tuple[ca.Box, Array]  # a set of decisions, and one of them


@st.composite
def guarded(draw: st.DrawFn) -> Guarded:
    """A box of one to three dimensions with spacings, rows through it, or an equality."""
    d = draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    low = np.round(rng.uniform(-5.0, 5.0, d), 2)
    span = np.array(draw(st.lists(st.sampled_from([0.5, 3.0, 100.0]), min_size=d, max_size=d)))
    steps = draw(st.lists(st.sampled_from([0.0, 0.05, 0.25, 0.4]), min_size=d, max_size=d))
    equal = d > 1 and draw(st.booleans())
    spacing = np.array(steps) * span
    if equal:
        spacing[0] = 0.0  # an equality is solved for what has no spacing
    box = ca.Box(low, low + span, spacing=spacing)
    inside = box.nearest(box.from_unit(rng.uniform(0.2, 0.8, d)))
    rows = rng.normal(size=(draw(st.integers(0, 3)), d)) / span
    bounds = rows @ inside + rng.uniform(0.02, 0.5, len(rows))
    if equal:
        row = rng.normal(size=(1, d)) / span
        row[0, 0] = 1.0 / span[0]
        return ca.Polytope(box, rows, bounds, equal=(row, row @ inside)), inside
    if len(rows):
        return ca.Polytope(box, rows, bounds), inside
    if not box.spaced:
        box = ca.Box(low, low + span, spacing=(0.25 * span).tolist())
    return box, box.nearest(inside)


def around(rng: np.random.Generator, box: ca.Box, inside: Array) -> ca.Box:
    """Limits of a request that hold an allowed decision."""
    low = inside - rng.uniform(0.0, 0.5, box.dim) * (inside - box.low)
    high = inside + rng.uniform(1e-3, 0.5, box.dim) * (box.high - inside)
    high = np.maximum(high, low + 1e-9 * box.span)
    return ca.Box(low, np.minimum(high, box.high))


@given(guarded(), st.integers(0, 2**32 - 1), st.sampled_from([0.1, 0.02, None]), st.booleans())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_sequence_of_asks_leaves_what_is_allowed(
    case: Guarded, seed: int, reach: float | None, moves: bool
) -> None:
    decision, inside = case
    max_move = None if moves else (0.04 * decision.span).tolist()
    rng = np.random.default_rng(seed)
    start = decision.from_unit(rng.random(decision.dim))  # allowed or not
    policy = ca.SurfaceSampling(
        UNIT, decision, start=start, reach=reach, share=0.2, max_move=max_move, rng=seed
    )
    beginning, happened = policy.snapshot(), list[Any]()
    policy.listen(happened.append)
    scale = 10.0 ** rng.integers(-3, 3)
    for i in range(40):
        x = rng.random(1)
        within = around(rng, decision, inside) if i % 3 == 0 else None
        asked = policy.ask(x, within=within)
        best = policy.recommend(x, within=within)
        for value in (asked.value, best):
            assert decision.allows(value), (decision, value)
            if within is not None:
                assert ((within.low <= value) & (value <= within.high)).all(), (within, value)
        gap = decision.to_unit(asked.value) - x
        policy.tell(asked, float(-gap @ gap + scale * rng.normal()))
        if i == 20:
            if max_move is not None:
                policy.renew_reference()
            policy = _again(policy, beginning, happened)
            beginning, happened = policy.snapshot(), []
            policy.listen(happened.append)
    reader, contexts = ca.Reader(policy.export()), rng.random((5, 1))
    for x, best in zip(contexts, policy.recommend_many(contexts), strict=True):
        read = reader.decide([float(x[0])])
        assert decision.allows(read)
        np.testing.assert_allclose(read, best, rtol=1e-9, atol=1e-9 * decision.span.max())
    assert all(decision.allows(bin_.best) for bin_ in policy.bins())


def _again(policy: Policy, beginning: bytes, happened: list[Any]) -> Policy:
    """The same policy from a file, which is also the same from its events."""
    replayed = Policy.from_snapshot(beginning)
    for event in happened:
        replayed.apply(ca.events.from_plain(json.loads(json.dumps(ca.events.to_plain(event)))))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy"
        policy.save(path)
        loaded = ca.load(path)
    assert replayed.snapshot() == loaded.snapshot() == policy.snapshot()
    return loaded


def hill(x: Array, y: Array) -> Any:
    """Highest at a third of the first side, and at the context along the others."""
    total = -((y[0] - 0.3) ** 2)
    for i in range(1, y.shape[0]):
        total -= (y[i] - x[0]) ** 2
    return total


SETS = {
    "spaced": ca.Box([0.0, 0.0], [1.0, 1.0], spacing=[0.05, 0.0]),
    "spaced everywhere": ca.Box([0.0, 0.0], [1.0, 1.0], spacing=0.1),
    "coupled": ca.Polytope(ca.Box.unit(2), [[1.0, 1.0], [-1.0, 1.0]], [0.9, 0.4]),
    "both": ca.Polytope(ca.Box([0.0, 0.0], [1.0, 1.0], spacing=[0.0, 0.1]), [[1.0, 1.0]], [0.75]),
    "a budget": ca.Polytope(
        ca.Box([0.0] * 3, [1.0] * 3), np.empty((0, 3)), [], equal=([[1.0, 1.0, 1.0]], [1.2])
    ),
}


def world(decision: ca.Box) -> ca.Problem:
    free = ca.Box(decision.low, decision.high)
    plain = ca.Problem(context=UNIT, decision=free, mean_payoff=hill, noise=0.05)
    return plain.allowing(decision)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("delay", [0, 7])
def test_the_compiled_loop_decides_as_the_live_policy_does(name: str, delay: int) -> None:
    fast, slow = (world(SETS[name]).with_feedback(delay=delay) for _ in range(2))
    slow._functions = fast.functions._replace(compiled=False)
    slow.best_many = fast.best_many  # type: ignore[method-assign]
    runs = [ca.simulate("recommended", one, horizon=400, rng=1) for one in (fast, slow)]
    assert np.array_equal(runs[0].regret, runs[1].regret)  # what is not allowed, slow refuses


@pytest.mark.parametrize("name", SETS)
def test_the_best_decision_of_a_guarded_world_is_allowed_and_beaten_by_none(name: str) -> None:
    check_problem(world(SETS[name]))


def test_the_best_of_spaced_values_is_found_in_many_dimensions_as_by_trying_all() -> None:
    box = ca.Box([0.0] * 4, [1.0] * 4, spacing=0.125)  # 6,561 values: all are tried
    fine = ca.Box([0.0] * 4, [1.0] * 4, spacing=0.0625)  # 83,521 values: neighbours are
    decision = ca.Polytope(fine, [[1.0, 1.0, 1.0, 1.0], [1.0, -1.0, 0.0, 0.0]], [1.6, 0.1])
    contexts = np.linspace(0.05, 0.95, 7)[:, None]
    grid = np.linspace(0.0, 1.0, 17)
    points = np.stack(np.meshgrid(*[grid] * 4, indexing="ij"), -1).reshape(-1, 4)
    points = points[(points.sum(axis=1) <= 1.6) & (points[:, 0] - points[:, 1] <= 0.1)]
    found = world(decision).best_many(contexts)[1]
    for x, payoff in zip(contexts, found, strict=True):
        tiled = np.tile(x, (len(points), 1))
        assert payoff == pytest.approx(world(box).mean_many(tiled, points).max(), abs=1e-12)


@pytest.mark.parametrize("name", SETS)
def test_guards_are_learned_within(name: str) -> None:
    """Regret against the best allowed decision, in the last half, is below that of the start."""
    problem = world(SETS[name])
    run = ca.simulate("recommended", problem, horizon=2000, replications=4, rng=2)
    contexts = np.random.default_rng(0).random((200, 1))
    start = np.array([SETS[name].nearest(problem.decision.centre)] * 200)
    lost = problem.best_many(contexts)[1] - problem.mean_many(contexts, start)
    last = (run.regret[:, -1] - run.regret[:, -4]) / (2000 - run.checkpoints[-4])
    assert last.mean() < 0.25 * lost.mean()
    assert (run.recommend_regret[:, -1] < 0.25 * lost.mean()).all()


def test_a_spacing_wider_than_the_reach_does_not_hold_it_at_the_start() -> None:
    decision = ca.Box([0.0], [1.0], spacing=0.25)
    policy = ca.SurfaceSampling(ca.Box.unit(0), decision, start=[0.0], reach=0.02, rng=0)
    rng = np.random.default_rng(1)
    for _ in range(400):
        asked = policy.ask()
        policy.tell(asked, -((asked.value[0] - 0.8) ** 2) + 0.1 * rng.normal())
    assert policy.recommend().tolist() == [0.75]
    assert policy.reach is not None
    assert policy.reach[0] >= 0.25


def test_an_incumbent_that_is_not_allowed_is_projected_and_the_answer_says_so() -> None:
    start = {"price": 2.02, "fee": 2.5}
    policy = ca.SurfaceSampling(UNIT, COUPLED, start=start, rng=0)
    policy.pause()
    asked = policy.ask([0.5])
    assert (asked.role, asked.projected) == ("incumbent", True)
    assert COUPLED.allows(asked.value)
    assert asked.value.tolist() == pytest.approx(COUPLED.nearest(start).tolist(), abs=1e-9)
    assert ca.Decision.from_json(asked.to_json()).projected
    found = policy.explain([0.5])
    assert found["start"] == [2.02, 2.5]
    assert found["allowed_start"] == asked.value.tolist()
    assert "That is not allowed here; the nearest decision that is: price 3.2, fee 2.2." in str(
        found
    )
    allowed = ca.SurfaceSampling(UNIT, COUPLED, start={"price": 5.0, "fee": 1.0}, rng=0)
    allowed.pause()
    assert not allowed.ask([0.5]).projected


def test_an_incumbent_follows_a_rule_or_a_function_into_what_is_allowed() -> None:
    rule = ca.AffineRule([2.0, 2.0], [[6.0], [1.0]])
    decisions = []
    for start in (rule, lambda x: rule_at(float(x[0]))):
        policy = ca.SurfaceSampling(UNIT, COUPLED, start=start, share=0.5, rng=3)
        policy.pause()
        decisions.append(policy.ask([0.7]).value)
        assert COUPLED.allows(decisions[-1])
        assert COUPLED.allows(policy.recommend([0.7]))
    np.testing.assert_allclose(decisions[0], decisions[1])


def rule_at(x: float) -> list[float]:
    return [2.0 + 6.0 * x, 2.0 + x]


def test_an_event_whose_decision_is_not_allowed_is_refused() -> None:
    policy, twin = (ca.SurfaceSampling(UNIT, COUPLED, share=0.5, rng=1) for _ in range(2))
    happened = list[Any]()
    policy.listen(happened.append)
    for _ in range(12):
        policy.ask([0.5])
    roles = {event.role: event for event in happened}
    for event in (roles["explored"], roles["incumbent"]):
        for value in ([5.02, 1.0], [5.0, 3.5]):
            with pytest.raises(InputError, match="must be allowed by"):
                twin.apply(event._replace(value=np.array(value)))
    other = roles["incumbent"]._replace(value=np.array([5.5, 1.0]))
    with pytest.raises(InputError, match="must be the start"):
        twin.apply(other)
    for event in happened:
        twin.apply(event)
    assert twin.snapshot() == policy.snapshot()


def test_limits_that_leave_nothing_are_refused_and_change_nothing() -> None:
    policy = ca.SurfaceSampling(UNIT, COUPLED, ttl=1, rng=0)
    policy.ask([0.5])
    before = policy.snapshot()
    rows = "`fee <= price - 1`, `price <= 1.2` and `fee >= 1.0`"
    none: dict[str, dict[str, tuple[float, float]]] = {
        rows: {"price": (1.0, 1.2), "fee": (1.0, 2.0)},
        "`price >= 1.01` and `price <= 1.02` with spacing=0.05": {"price": (1.01, 1.02)},
    }
    for reason, within in none.items():
        for verb in (policy.ask, policy.recommend, policy.explain):
            with pytest.raises(InputError) as error:
                verb([0.5], within=within)
            rule = "`within` must leave a decision that is allowed, but got "
            assert str(error.value) == rule + reason
    assert policy.snapshot() == before


def test_limits_that_fix_a_coordinate_hold_to_the_last_digit() -> None:
    policy = ca.SurfaceSampling(UNIT, COUPLED, rng=0)
    rng = np.random.default_rng(0)
    for _ in range(60):
        fee = float(rng.uniform(0.0, 2.0))
        asked = policy.ask(rng.random(1), within={"fee": (fee, fee)})
        assert asked.value[1] == fee
        assert COUPLED.allows(asked.value)
        policy.tell(asked, float(rng.normal()))


@pytest.mark.parametrize("decision", [SHOP, COUPLED])
@pytest.mark.parametrize(
    "make",
    [
        lambda decision: ca.StaticKWSA(UNIT, decision, bins=4, step=1.0),
        lambda decision: ca.AdaptiveKWSA(UNIT, decision, horizon=100, step=1.0),
        lambda decision: ca.UniformUCB(UNIT, decision, bins=4, arms=4),
        lambda decision: ca.RobbinsMonro(UNIT, decision, step=1.0, bins=4),
    ],
)
def test_a_policy_that_cannot_keep_a_guard_refuses_it_when_it_is_made(
    make: Any, decision: ca.Box
) -> None:
    with pytest.raises(SettingsError, match="decides for any value of a box, but got coupled"):
        make(decision)


def test_a_fitted_gradient_keeps_guards_and_finds_the_best_allowed_decision() -> None:
    policy = ca.RobbinsMonro(ca.Box.unit(0), COUPLED, start=[2.0, 2.0], rng=0)
    rng = np.random.default_rng(0)
    for _ in range(200):
        asked = policy.ask()
        assert COUPLED.allows(asked.value)
        gap = asked.value - [7.0, 3.0]
        policy.tell(asked, float(-gap @ gap), gradient=-2.0 * gap + 0.1 * rng.normal(size=2))
    # nothing is explored, so it may rest two steps beside the best value
    np.testing.assert_allclose(policy.recommend(), [6.0, 2.0], atol=0.1001)


def test_policies_by_name_keep_guards_as_every_policy_keeps_its_promises() -> None:
    context = ca.Box([18.0], [90.0], names=["age"])
    for decision in (SHOP, COUPLED):
        check_policy("recommended", context=context, decision=decision, rounds=60)
        check_policy("fixed", context=context, decision=decision, rounds=20)


def test_what_was_really_done_and_what_a_log_did_need_not_be_allowed() -> None:
    policy = ca.SurfaceSampling(ca.Box.unit(0), COUPLED, rng=0)
    policy.tell(policy.ask(), 1.0, value={"price": 3.333, "fee": 3.0})
    done = {"price": [2.0, 2.5, 3.01] * 20, "fee": [3.0, 3.5, 2.0] * 20}
    policy.learn_from(done | {"payoff": [1.0, 2.0, 3.0] * 20})
    assert policy.reach is not None
    assert policy.reach[0] >= 0.05
    for _ in range(20):
        asked = policy.ask()
        assert COUPLED.allows(asked.value)
        policy.tell(asked, 1.0)


def test_policy_and_problem_must_allow_the_same_decisions() -> None:
    policy = ca.SurfaceSampling(UNIT, SETS["coupled"])
    with pytest.raises(SettingsError, match="must have the same decision box"):
        ca.simulate(policy, world(SETS["both"]), horizon=10)
    with pytest.raises(SettingsError, match="must have the same decision box"):
        ca.simulate(policy, "two-communities", horizon=10)
    ca.simulate(policy, world(SETS["coupled"]), horizon=10)


class Careless:
    """A policy of somebody's own that knows no guards."""

    def __init__(self, context: ca.Box, decision: ca.Box) -> None:
        self.value = decision.low + 0.91 * decision.span

    def ask(self, context: Any) -> Array:
        return self.value

    def tell(self, decision: Any, payoff: float) -> None:
        pass


def test_a_policy_of_ones_own_is_refused_where_it_leaves_what_is_allowed() -> None:
    with pytest.raises(PolicyError, match="Careless must decide as Polytope"):
        ca.simulate(Careless, world(SETS["coupled"]), horizon=10)


def test_what_is_allowed_must_be_in_the_box_of_the_problem() -> None:
    with pytest.raises(SettingsError, match="what is allowed must be a set in"):
        ca.problem("two-communities").allowing(ca.Box([0.0, 0.0], [2.0, 1.0], spacing=0.1))


def test_a_guarded_world_that_cannot_be_compiled_says_so() -> None:
    payoff = {"of": 1.0}
    free = ca.Problem(
        context=UNIT, decision=ca.Box.unit(1), mean_payoff=lambda x, y: payoff.get("of") - y[0]
    )
    with pytest.warns(UserWarning, match="runs in Python"):
        free.best_decision([0.5])
    with pytest.raises(ca.errors.ProblemError, match="functions must be compiled"):
        free.allowing(ca.Box([0.0], [1.0], spacing=0.1)).best_decision([0.5])


def _run(script: str, given: str = "") -> str:
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    return done.stdout


def test_without_a_guard_nothing_of_it_is_compiled_or_carried() -> None:
    life = ca.SurfaceSampling(UNIT, ca.Box.unit(2)).life
    assert life.limits.guard is FREE
    assert life.model.deciding_classes[2] is type(FREE)
    script = """
import sys
import continuarm as ca
policy = ca.SurfaceSampling(ca.Box.unit(1), ca.Box.unit(2), rng=0)
policy.tell(policy.ask([0.5]), 1.0)
from continuarm.core.allowed.compiled import the_code
print(the_code.cache_info().currsize)
"""
    assert _run(script) == "0\n"


def test_a_reader_of_a_guarded_table_needs_no_numpy_and_refuses_a_damaged_one() -> None:
    policy = ca.SurfaceSampling(UNIT, COUPLED, start=[2.0, 2.5], rng=0)
    rng = np.random.default_rng(0)
    for _ in range(60):
        asked = policy.ask(rng.random(1))
        policy.tell(asked, float(-((asked.value[0] - 7) ** 2) + rng.normal()))
    script = """
import sys
sys.modules["numpy"] = sys.modules["numba"] = None
from continuarm.live.reader import Reader
print(Reader(sys.stdin.read()).decide([0.25]))
"""
    read = json.loads(_run(script, policy.export()))
    np.testing.assert_allclose(read, policy.recommend([0.25]), atol=1e-12)
    table = json.loads(policy.export())
    for name, wrong in (("rows", [[1.0]]), ("equal", 3), ("edges", [[0.0, 0.0], [1.0, 1.0]])):
        damaged = table | {"allowed": table["allowed"] | {name: wrong}}
        with pytest.raises(ValueError, match="this one is damaged"):
            ca.Reader(json.dumps(damaged))


@pytest.mark.parametrize("decision", [COUPLED, ca.Box([0.0], [1.0], spacing=0.1)])
def test_a_reader_copied_alone_refuses_a_guarded_table_and_works_with_its_files(
    decision: Any, tmp_path: Path
) -> None:
    policy, package = ca.SurfaceSampling(UNIT, decision, rng=0), Path(ca.__file__).parent
    (tmp_path / "reader.py").write_text((package / "live" / "reader.py").read_text())
    alone = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n"
    script = f"{alone}from reader import Reader\nprint(Reader(sys.stdin.read()).decide([0.25]))"
    command = [sys.executable, "-I", "-S", "-c", script]  # nothing is installed
    done = subprocess.run(command, capture_output=True, text=True, input=policy.export())
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ValueError: a table with allowed values or coupled limits needs")
    for name in ("live/reader_guard.py", "core/allowed"):
        copy = tmp_path / "continuarm" / name
        copy.parent.mkdir(parents=True)
        take = shutil.copytree if (package / name).is_dir() else shutil.copy
        take(package / name, copy)
    done = subprocess.run(command, capture_output=True, text=True, input=policy.export())
    np.testing.assert_allclose(json.loads(done.stdout), policy.recommend([0.25]), atol=1e-12)


def test_a_saved_polytope_that_was_damaged_is_refused() -> None:
    content = ca.SurfaceSampling(UNIT, COUPLED, rng=0).snapshot()
    text, _, rest = content.partition(b"\n")
    for name, wrong in (("b", [1.0]), ("anchor", [1.0, 4.0]), ("texts", []), ("A", [[0.0, 0.0]])):
        header = json.loads(text)
        header["decision"][name] = wrong
        with pytest.raises(ca.errors.SavedFileError):
            Policy.from_snapshot(json.dumps(header).encode() + b"\n" + rest)


@pytest.mark.parametrize(
    "box", [ca.Box([0.0], [1.0], spacing=0.1), ca.Polytope(UNIT, [[1.0]], [0.5])]
)
def test_what_is_no_decision_has_no_guards(box: ca.Box) -> None:
    """They would be forgotten: a context comes as it is, and limits of a request are a box."""
    with pytest.raises(SettingsError, match="`context` must be a Box without spacing or coupled"):
        ca.SurfaceSampling(box, UNIT)
    with pytest.raises(InputError, match="`within` must be a Box without spacing or coupled"):
        ca.SurfaceSampling(UNIT, UNIT).ask([0.5], within=box)
