"""Why a decision was made: as of when it was asked, and as of now; how sure it was."""

import json
from typing import Any

import numpy as np
import pytest

import continuarm as ca
from continuarm.core.learners.surface.explaining import dense
from continuarm.core.learners.surface.layout import DEGREES, FIRST, SQUARES, WEIGHT
from continuarm.core.state import HEAD
from continuarm.words import plus_minus

CONTEXT = ca.Box([18, 0], [90, 2.5e5], names=["age", "income"])
DECISION = ca.Box([1.0, 0.0], [9.0, 4.0], names=["price", "fee"])
START = {"price": 3.3, "fee": 1.0}
CUSTOMER = {"age": 37, "income": 152_000}


def serve(policy: ca.Policy, decisions: int, seed: int = 0) -> list[ca.Decision]:
    """The best price is 3 below an income of 120,000, and 5 above; the best fee is 0.5."""
    rng, made = np.random.default_rng(seed), []
    for _ in range(decisions):
        customer = {"age": rng.uniform(18, 90), "income": rng.uniform(0, 2.5e5)}
        decision = policy.ask(customer)
        price, fee = decision.value
        best = 3.0 + 2.0 * (customer["income"] > 1.2e5)
        policy.tell(decision, 6.0 - (price - best) ** 2 - (fee - 0.5) ** 2 + rng.normal())
        made.append(decision)
    return made


def shop(**options: Any) -> ca.Policy:
    return ca.SurfaceSampling(CONTEXT, DECISION, start=START, rng=1, **options)


def test_a_past_decision_is_explained_as_of_when_it_was_asked() -> None:
    policy = shop(share=0.1)
    heard: list[Any] = []
    serve(policy, 500)
    policy.listen(heard.append)
    decision = policy.ask(CUSTOMER)
    asked = heard[-1]
    before, known = policy.explain(asked), policy.explain(CUSTOMER)
    assert before["as_of"] == "asked"
    assert before["centre"] == known["centre"] == policy.recommend(CUSTOMER).tolist()
    assert before["peak"] == known["peak"]
    assert before["peak_error"] == known["peak_error"]
    assert before["payoffs"] == known["payoffs"]
    policy.tell(decision, 1.0)
    serve(policy, 500, seed=1)
    assert policy.explain(CUSTOMER)["payoffs"] != known["payoffs"]
    again = ca.events.from_plain(json.loads(json.dumps(ca.events.to_plain(asked))))
    assert isinstance(again, ca.events.Asked)
    for later in (asked, again, decision):
        assert policy.explain(later) == before
    assert json.loads(json.dumps(before)) == dict(before)


def test_the_text_says_what_was_decided_why_and_how_sure_it_was() -> None:
    policy = shop(share=0.1)
    policy.listen(lambda event: None)
    for decision in serve(policy, 800)[-200:]:
        found = policy.explain(decision)
        price, fee = (f"{round(value, 3):g}" for value in decision.value)
        lines = found["text"].splitlines()
        assert lines[0].startswith(f"Decision {decision.id}, for age ")
        assert lines[0].endswith(f" was price {price}, fee {fee}.")
        incumbent = found["why"] == "share"
        assert (
            (decision.role == "incumbent") == incumbent == ("to compare with (it" in found["text"])
        )
        assert found["why"] in ("share", "drawn", "uniform")
        for j, name in enumerate(DECISION.names):
            away, error = found["away"][j], found["peak_error"][j]
            assert away == decision.value[j] - found["centre"][j]
            assert f"One more unit of {name} was expected to bring" in found["text"]
            if abs(away) > 0.001:
                assert f"{'above' if away > 0 else 'below'} it in {name}" in found["text"]
            assert (error is None) == (f"{name} at " not in found["text"])
    whys = {policy.explain(d)["why"] for d in serve(policy, 300, seed=2)}
    assert whys == {"share", "drawn", "uniform"}


def test_each_reason_is_the_one_for_which_it_was_decided() -> None:
    policy = shop(share=0.3)
    policy.listen(lambda event: None)
    first = policy.ask(CUSTOMER)
    while first.role == "incumbent":
        first = policy.ask(CUSTOMER)
    assert policy.explain(first)["why"] == "early"
    assert policy.explain(CUSTOMER)["early"]
    assert "what is done today counts as the best" in str(policy.explain(CUSTOMER))
    policy.pause()
    paused = policy.ask(CUSTOMER)
    policy.resume()
    assert policy.explain(paused)["why"] == "paused"
    assert [guard["guard"] for guard in policy.explain(paused)["guards"] if guard["held"]] == [
        "pause"
    ]
    stencils = ca.StaticKWSA(ca.Box.unit(1), ca.Box.unit(1), bins=2, step=1.0)
    stencils.listen(lambda event: None)
    assert stencils.explain(stencils.ask([0.2]))["why"] == "own rule"
    limited = stencils.ask([0.2], within=ca.Box([0.1], [0.3]))
    assert stencils.explain(limited)["why"] == "limits"


def test_guards_that_were_active_are_listed_and_those_that_set_the_decision_are_marked() -> None:
    policy = shop(share=0.1)
    policy.listen(lambda event: None)
    serve(policy, 800)
    held = {"reach": 0, "within": 0}
    for _ in range(60):
        decision = policy.ask(CUSTOMER, within={"price": (3.0, 3.4)})
        found = policy.explain(decision)
        guards = {guard["guard"]: guard for guard in found["guards"]}
        assert list(guards) == ["reach", "within", "share"]
        assert guards["within"]["says"] == "price 3–3.4"
        low, high = np.array(found["allowed"])
        assert ((low - 1e-12 <= decision.value) & (decision.value <= high + 1e-12)).all()
        if decision.role == "incumbent":
            continue
        at_limit = decision.value[0] in (3.0, 3.4)
        assert guards["within"]["held"] == at_limit
        away = np.abs(np.array(found["away"])) >= np.array([0.8, 0.4]) - 1e-9
        assert guards["reach"]["held"] == away.any()
        held["within"] += at_limit
    assert held["within"] > 40  # the best price for this customer is 5


@pytest.mark.parametrize("spacing", [None, {"price": 0.3}])
def test_explain_says_that_max_move_set_the_decision(spacing: Any) -> None:
    """The best price for this customer is 5; the highest within 0.4 of 3.3 is 3.7, or 3.6."""
    box = ca.Box(DECISION.low, DECISION.high, names=["price", "fee"], spacing=spacing)
    policy = ca.SurfaceSampling(CONTEXT, box, start=START, max_move={"price": 0.4}, rng=1)
    assert not any(guard["held"] for guard in policy.explain(CUSTOMER)["guards"])
    policy.listen(lambda event: None)
    serve(policy, 800)
    found = policy.explain(CUSTOMER)
    [guard] = [one for one in found["guards"] if one["guard"] == "max_move"]
    assert guard["held"]
    assert guard["says"] == "price 2.9–3.7: price at most 0.4 from the reference"
    assert f"Guard max_move: {guard['says']} (it sets this decision)." in found["text"]
    limited = policy.explain(CUSTOMER, within={"price": (3.0, 3.4)})
    held = {guard["guard"]: guard["held"] for guard in limited["guards"]}
    assert held["within"] == (spacing is not None)  # without a spacing it stops short of 3.4
    assert not held["max_move"]
    asked = [policy.ask(CUSTOMER) for _ in range(60)]
    highest = max(asked, key=lambda one: float(one.value[0]))
    assert highest.value[0] == pytest.approx(3.7 if spacing is None else 3.6)
    text = policy.explain(highest)["text"]
    assert "from the reference, and what the request allowed (it set this decision)." in text


def test_a_move_that_is_wider_than_the_box_is_no_guard() -> None:
    policy = shop(max_move=100.0)
    assert "max_move" not in str(policy.explain(CUSTOMER))


def test_a_text_fits_a_terminal_and_says_what_its_errors_are() -> None:
    policy = shop(share=0.1)
    policy.listen(lambda event: None)
    for decision in serve(policy, 300)[-20:]:
        found = policy.explain(decision)
        lines = str(found).splitlines()
        assert max(map(len, lines)) <= 100
        assert " ".join(str(found).split()) == " ".join(found["text"].split())
        assert "Each ± is two standard errors." in lines
        pairs = zip(found["per_unit"], found["per_unit_error"], strict=True)
        assert all(plus_minus(gain, 2.0 * error, sign=True) in str(found) for gain, error in pairs)


def test_an_open_decision_is_explained_although_nobody_listened() -> None:
    policy = shop()
    serve(policy, 400)
    decision = policy.ask(CUSTOMER)
    found = policy.explain(decision)
    assert found["as_of"] == "asked"  # nothing was learned since
    assert found["why"] in ("drawn", "uniform")
    beside = policy.ask(CUSTOMER)
    policy.tell(beside, 3.0)
    later = policy.explain(decision)
    assert later["as_of"] == "now"
    assert later["why"] is None
    assert "all this is as of now" in str(later)
    assert later["value"] == found["value"]
    limited = policy.ask(CUSTOMER, within={"price": (3.0, 3.2)})
    assert policy.explain(limited)["as_of"] == "now"  # limits of an open decision are not kept
    loaded = ca.Policy.from_snapshot(policy.snapshot())
    assert loaded.explain(loaded.ask(CUSTOMER))["as_of"] == "asked"


def test_what_cannot_be_explained_is_refused_in_one_line() -> None:
    policy = shop()
    decision = policy.ask(CUSTOMER)
    policy.tell(decision, 3.0)
    with pytest.raises(ca.errors.UnknownDecisionError, match="by its event, which is kept if"):
        policy.explain(decision)
    forgotten = policy.ask(CUSTOMER)
    policy.forget(forgotten)
    with pytest.raises(ca.errors.UnknownDecisionError, match="by its event, which is kept if"):
        policy.explain(forgotten)
    with pytest.raises(ca.errors.UnknownDecisionError, match="of another"):
        policy.explain(shop().ask(CUSTOMER))
    with pytest.raises(ca.errors.InputError, match="limits of its own"):
        policy.explain(policy.ask(CUSTOMER), within={"price": (3.0, 4.0)})


def test_events_with_another_view_than_could_be_are_refused() -> None:
    policy = shop()
    heard: list[Any] = []
    beginning = policy.snapshot()
    policy.listen(heard.append)
    policy.ask(CUSTOMER)
    again, [asked] = ca.Policy.from_snapshot(beginning), heard
    for wrong in (
        asked._replace(why="luck"),
        asked._replace(why=3),
        asked._replace(view=np.zeros(3)),
        asked._replace(view=np.full(len(asked.view), np.nan)),
        asked._replace(view=[1.0] * len(asked.view)),
    ):
        with pytest.raises(ca.errors.InputError):
            again.apply(wrong)
    again.apply(asked)
    assert again.snapshot() == policy.snapshot()


def test_a_surface_that_takes_long_to_explain_is_explained_as_of_now() -> None:
    policy = ca.SurfaceSampling(ca.Box.unit(20), ca.Box.unit(30), rng=0)
    policy.listen(lambda event: None)
    decision = policy.ask(np.full(20, 0.5))
    assert decision.event is not None
    assert decision.event.view is None
    assert policy.explain(decision)["as_of"] == "now"


def learned(dx: int, dy: int, n: int, seed: int, hessian: Any = "varying") -> ca.Policy:
    """A surface that has seen decisions of the whole box, with coupled coordinates."""
    learner = ca.ResponseSurface(fade=0.0, hessian=hessian, ridge=1e-9, varying_ridge=1e-9)
    box, rng = ca.Box(np.full(dy, 2.0), np.full(dy, 6.0)), np.random.default_rng(seed)
    policy = ca.Policy(ca.Box.unit(dx), box, partition=ca.Grid(1), learner=learner, rng=seed)
    for _ in range(n):
        x, y = rng.random(dx), rng.random(dy)
        gap = y - 0.5 - 0.1 * x.sum()
        z = -3.0 * gap @ gap + 2.0 * gap[0] * gap[-1] * (dy > 1) + 0.3 * rng.standard_normal()
        policy.tell(policy.ask(x), float(z), value=box.from_unit(y))
    return policy


@pytest.mark.parametrize("hessian", ["varying", "constant", "diagonal"])
@pytest.mark.parametrize(("dx", "dy"), [(0, 1), (0, 3), (1, 2), (2, 2)])
def test_the_peak_is_as_sure_as_the_delta_method_says(dx: int, dy: int, hessian: Any) -> None:
    """Eq. 28, against a Jacobian by differences of the peak of eq. 1, with NumPy alone."""
    policy = learned(dx, dy, 400, 3, hessian)
    model, x = policy.life.model, np.full(dx, 0.7)
    cfg, row, u = model.lcfg, model.state.rows[1, HEAD:], np.full(dx, 0.4)  # u = 2x - 1
    (r, d), first = dense(cfg, row), int(row[FIRST])

    def peak(theta: Any) -> Any:
        terms = theta[first : first + cfg.terms].copy()
        by_context = theta[first + cfg.terms :].reshape(dx, cfg.varying)
        terms[: cfg.varying] += u @ by_context
        h = np.diag(terms[dy : 2 * dy])
        if cfg.terms > 2 * dy:
            h[np.triu_indices(dy, 1)] = terms[2 * dy :]
            h = h + np.triu(h, 1).T
        return 2.0 + 4.0 * (0.5 - 0.5 * np.linalg.solve(h, terms[:dy]))

    theta, step = np.linalg.solve(r, d), 1e-6
    sides = step * np.eye(len(theta))
    jacobian = np.array([(peak(theta + e) - peak(theta - e)) / (2 * step) for e in sides]).T
    noise = row[WEIGHT] * row[SQUARES] / row[DEGREES]
    covariance = noise * np.linalg.inv(r.T @ r)
    found = policy.explain(x)
    np.testing.assert_allclose(found["peak"], peak(theta), rtol=1e-6)
    expected = np.sqrt(np.diag(jacobian @ covariance @ jacobian.T))
    np.testing.assert_allclose(found["peak_error"], expected, rtol=1e-5)


def test_two_standard_errors_hold_the_best_decision_nineteen_times_of_twenty() -> None:
    """400 coordinates: 0.95 less five standard errors, √(0.05·0.95/400), is 0.895."""
    inside = []
    for seed in range(200):
        found = learned(0, 2, 100, seed).explain()
        assert None not in found["peak_error"]
        truth = 4.0  # the middle of the box
        inside += [
            abs(peak - truth) < 2.0 * error
            for peak, error in zip(found["peak"], found["peak_error"], strict=True)
        ]
    assert 0.895 < np.mean(inside) < 0.995


def test_a_peak_at_the_edge_or_not_surely_concave_has_no_standard_error() -> None:
    box, rng = ca.Box([0.0, 0.0], [10.0, 1.0], names=["bid", "cap"]), np.random.default_rng(0)
    policy = ca.SurfaceSampling(ca.Box.unit(0), box, reach=None, rng=0)
    for _ in range(400):
        decision = policy.ask()
        bid, cap = decision.value
        policy.tell(decision, 2.0 * bid - 30.0 * (cap - 0.4) ** 2 + 0.1 * rng.normal())
    found = policy.explain()
    assert found["peak_error"][0] is None
    assert abs(found["peak"][1] - 0.4) < 5.0 * found["peak_error"][1]
    assert "They do not show yet where the best bid lies in the box." in str(found)
    gain, error = found["per_unit"][0], found["per_unit_error"][0]
    assert gain == pytest.approx(2.0, abs=5.0 * error)


def test_a_context_matters_if_the_slope_at_the_best_decision_depends_on_it() -> None:
    """Not the slope in the middle of the box, where nothing was tried."""
    box, rng = ca.Box([0.0], [10.0], names=["price"]), np.random.default_rng(0)
    learner = ca.ResponseSurface(fade=0.0)
    policy = ca.Policy(CONTEXT, box, partition=ca.Grid(1), learner=learner, rng=0)
    for _ in range(1000):
        x = CONTEXT.from_unit(rng.random(2))
        best = 1.5 + x[0] / 90
        price = best + 0.5 * rng.standard_normal()
        policy.tell(policy.ask(x), float(-((price - best) ** 2) + rng.normal()), value=[price])
    found = policy.explain(CUSTOMER)
    assert found["chances"][0][0] < 1e-6
    assert found["chances"][1][0] > 0.01
    assert "Age matters for price; nothing shows that income does." in str(found)


@pytest.mark.parametrize("kind", [ca.StaticKWSA, ca.UniformUCB])
def test_who_listens_changes_no_decision(kind: Any) -> None:
    """What was known is found in the room where the decision was made, which counts asking."""
    boxes, rng = (ca.Box([0.0], [7.0]), ca.Box([0.1, 0.3], [0.7, 1.9])), np.random.default_rng(0)
    options: Any = {"step": 1.0} if kind is ca.StaticKWSA else {"arms": 3}
    policies = [kind(*boxes, bins=3, rng=0, **options) for _ in range(2)]
    policies[0].listen(lambda event: None)
    for _ in range(200):
        x, payoff = boxes[0].from_unit(rng.random(1)), rng.random()
        decisions = [policy.ask(x) for policy in policies]
        assert decisions[0].value.tobytes() == decisions[1].value.tobytes()
        for policy, decision in zip(policies, decisions, strict=True):
            policy.tell(decision, payoff)
    assert policies[0].snapshot() == policies[1].snapshot()


def test_what_is_known_of_a_decision_is_what_it_follows() -> None:
    """At the best decision known, where it is the peak, nothing is to be gained: the gates, which
    say how far contexts are believed, are those of deciding."""
    policy = shop()
    serve(policy, 1500)
    rng, seen = np.random.default_rng(5), 0
    for _ in range(40):
        found = policy.explain(CONTEXT.from_unit(rng.random(2)))
        if np.allclose(found["centre"], found["peak"], atol=1e-9):
            seen += 1
            np.testing.assert_allclose(found["per_unit"], 0.0, atol=1e-6)
    assert seen > 5
