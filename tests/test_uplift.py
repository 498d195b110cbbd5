"""What is compared with the incumbent: a share of decisions, a pause, and what they say."""

import json
import math
from typing import Any

import numpy as np
import pytest

import continuarm as ca
from continuarm.errors import InputError, SavedFileError, SettingsError
from continuarm.live import events, state
from continuarm.live.uplift import BEGIN, Tally, tally_of, uplift_of

AGE = ca.Box([18.0], [90.0], names=["age"])
PRICE = ca.Box([1.0, 0.0], [9.0, 4.0], names=["price", "fee"])
SERVED = ((3, 0), (3, 1), (4, 0))  # the policy's seed, and the world's
START = {"price": 3.3, "fee": 0.7}
RULE = ca.AffineRule([2.1, 0.3], [[0.031], [0.007]])


def as_today(context: Any) -> list[float]:
    return [2.0 + context["age"] / 30.0, 1.0]


def made(**options: Any) -> ca.Policy:
    given: dict[str, Any] = {"start": START, "share": 0.2, "rng": 3} | options
    return ca.SurfaceSampling(AGE, PRICE, **given)


def payoff_of(decision: ca.Decision, rng: np.random.Generator) -> float:
    return float(5.0 - ((decision.value - [4.0, 1.0]) ** 2).sum() + rng.normal())


def serve(policy: ca.Policy, decisions: int, seed: int = 0) -> list[ca.Decision]:
    rng, served = np.random.default_rng(seed), []
    for _ in range(decisions):
        served.append(policy.ask([rng.uniform(18.0, 90.0)]))
        policy.tell(served[-1], payoff_of(served[-1], rng))
    return served


def draws(n: int, seed: int = 0, share: float = 0.2) -> list[tuple[float, bool]]:
    """Payoffs, and whether they are the incumbent's."""
    rng = np.random.default_rng(seed)
    theirs = rng.random(n) < share
    payoffs = rng.normal(10.0 + 2.0 * ~theirs, 3.0)
    return list(zip(payoffs.tolist(), theirs.tolist(), strict=True))


def tallied(seen: list[tuple[float, bool]], share: float = 0.2) -> Tally:
    tally = Tally()
    for payoff, theirs in seen:
        tally = tally.with_payoff(payoff, theirs=theirs, share=share)
    return tally


def scores(seen: list[tuple[float, bool]], share: float) -> tuple[Any, Any]:
    """α and β, written out: what payoffs were lately is their mean, the last thousand's."""
    alpha, beta, means, counts = [], [], [0.0, 0.0], [0, 0]
    for k, (payoff, theirs) in enumerate(seen):
        g, h = (means[i] if counts[i] else means[1 - i] for i in (0, 1))
        if k >= BEGIN:
            alpha.append(g if theirs else g + (payoff - g) / (1.0 - share))
            beta.append(h + (payoff - h) / share if theirs else h)
        counts[theirs] += 1
        means[theirs] += (payoff - means[theirs]) / min(counts[theirs], 1000)
    return np.array(alpha), np.array(beta)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.9])
def test_a_tally_is_the_sums_of_its_definition(share: float) -> None:
    seen = draws(3000, share=share)
    tally, (alpha, beta) = tallied(seen, share), scores(seen, share)
    assert tally.counted == len(alpha) == 3000 - BEGIN
    assert tally.ours + tally.theirs == 3000
    np.testing.assert_allclose([tally.a, tally.b], [alpha.mean(), beta.mean()], rtol=1e-9)
    spread = len(alpha) * np.cov(alpha, beta, ddof=0)
    np.testing.assert_allclose(
        [[tally.aa, tally.ab], [tally.ab, tally.bb]], spread, rtol=1e-9, atol=1e-6
    )
    for largest, scored in ((tally.largest, alpha), (tally.their_largest, beta)):
        before = np.cumsum(scored)[:-1] / np.arange(1, len(scored))
        assert largest >= ((scored[1:] - before) ** 2).max() * (1 - 1e-9)


def test_the_interval_is_that_of_the_page_and_percent_inverts_it() -> None:
    tally = tallied(draws(3000))
    alpha, beta = scores(draws(3000), 0.2)
    found = uplift_of(tally, 0, 0.95)
    n, r = len(alpha), (-2 * math.log(0.05) + math.log(1 - 2 * math.log(0.05))) / 10_000
    width = math.sqrt(2 * (n * r + 1) / (n**2 * r) * math.log(math.sqrt(n * r + 1) / 0.05))
    gain = alpha - beta
    assert found.per_decision is not None
    assert found.percent is not None
    assert found.per_decision.estimate == pytest.approx(gain.mean())
    assert found.per_decision.high - gain.mean() == pytest.approx(width * gain.std())
    assert found.per_decision.low < 2.0 < found.per_decision.high
    assert found.percent.low < 20.0 < found.percent.high
    inside = [
        q
        for q in np.linspace(-50, 100, 3001)
        if abs((alpha - (1 + q / 100) * beta).mean())
        <= width * (alpha - (1 + q / 100) * beta).std()
    ]
    assert found.percent.low == pytest.approx(inside[0], abs=0.06)
    assert found.percent.high == pytest.approx(inside[-1], abs=0.06)
    assert str(found).startswith(f"{gain.mean():+.4g} [")


def test_less_cost_is_better_and_a_mean_that_may_be_nothing_has_no_percent() -> None:
    costs = [(payoff - 24.0, theirs) for payoff, theirs in draws(3000)]
    found = uplift_of(tallied(costs), 0, 0.95)
    assert found.percent is not None
    assert found.percent.low < 100.0 * 2.0 / 14.0 < found.percent.high
    around = [(payoff - 10.0, theirs) for payoff, theirs in draws(3000)]
    found = uplift_of(tallied(around), 0, 0.95)
    assert found.per_decision is not None
    assert found.percent is None


def test_where_one_payoff_rules_nothing_is_said() -> None:
    """Nor where payoffs are all alike, or nobody has bought from the incumbent yet."""
    absurd = [*draws(3000), (1e99, True)]
    for seen in (absurd, [(1.0, k % 5 == 0) for k in range(500)], draws(30)):
        found = uplift_of(tallied(seen), 0, 0.95)
        assert found.per_decision is None
        assert found.percent is None
        assert "too little is known" in str(found)
    assert all(math.isfinite(number) for number in tallied([*absurd, (-1e300, False)]))


@pytest.mark.parametrize("level", [0.0, -1e6, 1e9, 1e12])
def test_a_level_that_is_large_against_the_noise_does_no_harm(level: float) -> None:
    seen = draws(3000)
    moved = [(payoff + level, theirs) for payoff, theirs in seen]
    here, there = (uplift_of(tallied(some), 0, 0.95).per_decision for some in (seen, moved))
    assert here is not None
    assert there is not None
    np.testing.assert_allclose(there, here, atol=1e-13 * abs(level) + 1e-9)


@pytest.mark.parametrize("base", [0.0, -0.1, 0.7])
def test_nothing_is_said_before_the_incumbent_has_sold_enough(base: float) -> None:
    """Payoffs that are alike but for rare sales: rounding is no variance."""
    rng = np.random.default_rng(1)
    for share in (0.1, 0.01):
        tally, sold = Tally(), 0
        for _ in range(4000):
            theirs, sale = bool(rng.random() < share), bool(rng.random() < 0.01)
            tally = tally.with_payoff(base + 50.0 * sale, theirs=theirs, share=share)
            sold += theirs and sale
            if sold < 10:
                assert uplift_of(tally, 0, 0.95).per_decision is None
    alike = [(0.1 + float(k % 10 > 0), k % 10 == 0) for k in range(500)]
    assert uplift_of(tallied(alike), 0, 0.95).per_decision is None


@pytest.mark.parametrize("start", [START, RULE, as_today])
def test_a_share_of_decisions_is_the_incumbents_to_the_last_digit(start: Any) -> None:
    policy, n = made(start=start), 2000
    served = serve(policy, n)
    theirs = [one for one in served if one.role == "incumbent"]
    assert abs(len(theirs) - 0.2 * n) < 4.0 * math.sqrt(0.16 * n)
    for one in theirs:
        at = {"age": float(one.context[0])}
        if start is START:
            expected = [3.3, 0.7]
        elif start is RULE:
            expected = (np.array([2.1, 0.3]) + [0.031, 0.007] * one.context).tolist()
        else:
            expected = as_today(at)
        assert one.value.tolist() == pytest.approx(expected, rel=1e-15)
        assert start is RULE or one.value.tolist() == expected
    assert {one.role for one in served} == {"incumbent", "explored"}
    assert policy.stats().told == sum(policy.stats().payoffs_per_bin) == n  # all are learned
    found = policy.uplift()
    assert (found.counted, found.incumbents, found.waiting) == (n, len(theirs), 0)


def test_who_decides_is_the_draws_alone() -> None:
    """Not the payoffs, nor the contexts; and no number that decisions are drawn with."""
    roles = [[one.role for one in serve(made(rng=rng), 300, seed)] for rng, seed in SERVED]
    assert roles[0] == roles[1] != roles[2]
    bold = [serve(made(share=share), 300) for share in (0.0, 0.2)]
    first = next(k for k, one in enumerate(bold[1]) if one.role == "incumbent")
    assert first > 0
    for one, other in zip(bold[0][:first], bold[1][:first], strict=True):
        assert one.value.tobytes() == other.value.tobytes()


def test_within_limits_the_incumbent_is_moved_into_them() -> None:
    policy = made(share=0.999)
    decision = policy.ask([40.0], within={"price": (5.0, 6.0)})
    assert decision.role == "incumbent"
    assert decision.value.tolist() == [5.0, 0.7]


def test_paused_every_decision_is_the_incumbents_and_is_learned_but_not_compared() -> None:
    policy, heard = made(share=0.0), list[Any]()
    policy.listen(heard.append)
    serve(policy, 50)
    policy.pause()
    policy.pause()
    assert policy.paused
    assert {one.role for one in serve(policy, 50)} == {"incumbent"}
    policy.resume()
    assert {one.role for one in serve(policy, 50)} == {"explored"}
    assert policy.stats().told == sum(policy.stats().payoffs_per_bin) == 150
    others = [event for event in heard if not isinstance(event, events.Asked | events.Told)]
    assert others == [events.Paused(), events.Resumed()]
    assert [type(event) for event in others] == [events.Paused, events.Resumed]
    shared = made()
    serve(shared, 50)
    shared.pause()
    serve(shared, 50)
    assert shared.uplift().counted == 50


def close(policy: ca.Policy, decision: ca.Decision, *, lost: bool, payoff: float) -> None:
    if lost:
        policy.forget(decision)
    else:
        policy.tell(decision, payoff)


def stencils(share: float) -> ca.Policy:
    return ca.StaticKWSA(AGE, PRICE, start=START, bins=1, step=1.0, share=share, rng=0)


def arms(share: float) -> ca.Policy:
    return ca.UniformUCB(AGE, PRICE, bins=1, arms=3, share=share, rng=0)


@pytest.mark.parametrize("share", [0.0, 0.5])
@pytest.mark.parametrize("maker", [stencils, arms])
def test_who_counts_what_it_asks_goes_on_where_it_was(maker: Any, share: float) -> None:
    """Payoffs of the incumbent teach it nothing, while paused or shared."""
    mixed, alone = maker(share), maker(0.0)
    own, theirs = 0, 0
    for k in range(200):
        if k == 100:
            mixed.pause()
        elif k == 120:
            mixed.resume()
        decision = mixed.ask([40.0])
        lost = k % 11 == 3
        close(mixed, decision, lost=lost, payoff=float(k % 7))
        if decision.role == "incumbent":
            theirs += 1
            continue
        own += 1
        same = alone.ask([40.0])
        assert same.value.tobytes() == decision.value.tobytes()
        close(alone, same, lost=lost, payoff=float(k % 7))
    assert theirs == 20 if share == 0.0 else 70 < theirs < 150
    assert own + theirs == 200


def test_payoffs_count_in_the_order_of_asking_however_late_they_come() -> None:
    rng, policies = np.random.default_rng(5), [made(), made()]
    asked = [[policy.ask([30.0 + k % 7]) for k in range(400)] for policy in policies]
    payoffs = rng.normal(size=400).tolist()
    for k in range(400):
        policies[0].tell(asked[0][k], payoffs[k])
    order = rng.permutation(399) + 1
    for k in order.tolist():
        policies[1].tell(asked[1][k], payoffs[k])
    assert policies[1].uplift().counted == 0  # the first is open
    assert policies[1].uplift().waiting == 400
    assert policies[1].uplift().awaited == (asked[1][0].id, 399, None)
    waits = f"400 more wait until decision {asked[1][0].id}, asked 399 decisions ago, is told"
    assert waits in str(policies[1].uplift())
    policies[1].tell(asked[1][0], payoffs[0])
    assert policies[0].life.comparison.tally == policies[1].life.comparison.tally
    assert policies[0].uplift() == policies[1].uplift()
    assert not policies[1].life.comparison.paid


def test_where_there_is_a_clock_uplift_says_since_when_it_waits() -> None:
    policy = made(ttl=None, ttl_seconds=1000.0)
    first = policy.ask([40.0], now=100.0)
    policy.tell(policy.ask([40.0], now=160.0), 1.0)
    assert policy.uplift().awaited == (first.id, 1, 60.0)
    assert "asked 1 decision and 60 seconds ago" in str(policy.uplift())
    policy.ask([40.0], now=1100.0)
    assert policy.uplift().counted == 1  # the first is given up


def test_what_is_lost_is_not_counted_and_silence_is_worth_what_it_is_said_to_be() -> None:
    policy = made()
    first, second, third = (policy.ask([40.0]) for _ in range(3))
    policy.tell(third, 1.0)
    policy.forget(first)
    assert (policy.uplift().counted, policy.uplift().waiting) == (0, 2)
    policy.forget(second)
    assert (policy.uplift().counted, policy.uplift().waiting) == (1, 0)
    assert policy.uplift().awaited is None
    silent = made(ttl=5, missing=0.0)
    for _ in range(12):
        silent.ask([40.0])
    assert (silent.uplift().counted, silent.uplift().waiting) == (7, 5)
    silent.forget_all()
    assert (silent.uplift().counted, silent.uplift().waiting) == (7, 0)


@pytest.mark.parametrize("start", [START, RULE])
def test_it_survives_saving_copying_and_replaying(start: Any, tmp_path: Any) -> None:
    policy, heard = made(start=start), list[Any]()
    twin = policy.copy()
    policy.listen(heard.append)
    serve(policy, 200)
    policy.pause()
    serve(policy, 5)
    left = [policy.ask([50.0]) for _ in range(3)]
    policy.resume()
    later = [policy.ask([50.0]) for _ in range(4)]
    policy.tell(later[3], 1.5)
    for event in heard:
        twin.apply(events.from_plain(json.loads(json.dumps(events.to_plain(event)))))
    content = policy.snapshot()
    assert twin.snapshot() == content
    policy.save(tmp_path / "policy")
    loaded = ca.load(tmp_path / "policy")
    assert loaded.share == 0.2
    assert loaded.snapshot() == content
    for other in (policy, loaded, twin, policy.copy()):
        assert other.uplift().waiting == 4
        assert other.uplift().counted == 200
    for decision in (*left, *later[:3]):
        policy.tell(decision, 2.0)
        loaded.tell(decision.id, 2.0)
    assert policy.snapshot() == loaded.snapshot()
    assert loaded.uplift().counted == 204
    paused = made()
    paused.pause()
    paused.save(tmp_path / "paused")
    again = ca.load(tmp_path / "paused")
    assert again.paused
    assert again.ask([30.0]).role == "incumbent"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("share", 1.5),
        ("share", None),
        ("paused", 1),
        ("line", ["0", "0"]),
        ("line", ["ffff"]),
        ("paid", ["3"]),
    ],
)
def test_a_crafted_comparison_is_refused(name: str, value: Any) -> None:
    policy = made()
    policy.ask([40.0])
    text, _, data = state.to_bytes(policy.life).partition(b"\n")
    header = json.loads(text) | {name: value}
    with pytest.raises(SavedFileError):
        state.from_bytes(json.dumps(header).encode() + b"\n" + data)


def test_a_crafted_tally_is_refused() -> None:
    tally = tallied(draws(100))
    assert tally_of(list(map(float, tally))) == tally
    wrong: list[dict[str, Any]] = [
        {"ours": -1},
        {"ours": 0.5},
        {"a": math.nan},
        {"aa": -1.0},
        {"a": 1e200},
        {"ab": 1e99},
    ]
    for change in wrong:
        with pytest.raises(ValueError, match=r"must|needed"):
            tally_of(tally._replace(**change))


def test_an_event_of_another_share_is_refused() -> None:
    policy, heard = made(share=0.999), list[Any]()
    policy.listen(heard.append)
    policy.ask([40.0])
    with pytest.raises(InputError, match="incumbent's with a `share`"):
        made(share=0.0).apply(heard[0])
    paused = made(share=0.0)
    explored = list[Any]()
    paused.listen(explored.append)
    paused.ask([40.0])
    other = made(share=0.0)
    other.pause()
    with pytest.raises(InputError, match="while a policy is paused"):
        other.apply(explored[0])


def test_settings_that_compare_nothing_are_refused() -> None:
    for share in (-0.1, 1.0, 1e-5, math.nan, "0.1", True):
        with pytest.raises(SettingsError, match="share"):
            made(share=share)
    with pytest.raises(SettingsError, match="`share` must be above 0"):
        made(share=0.0).uplift()
    for confidence in (0.0, 0.3, 1.0, 95):
        with pytest.raises(SettingsError, match="confidence"):
            made().uplift(confidence)


def test_a_simulation_compares_too() -> None:
    def shared(context: ca.Box, decision: ca.Box, rng: Any) -> ca.Policy:
        return ca.SurfaceSampling(context, decision, start=[0.1, 0.9], share=0.1, rng=rng)

    run = ca.simulate(shared, "two-communities", horizon=3000, rng=1)
    found = run.policies[0].uplift()
    assert found.counted == 3000
    assert found.per_decision is not None
    assert found.per_decision.low > 0.0


def test_an_event_that_is_not_what_the_incumbent_does_is_refused() -> None:
    policy, heard = made(share=0.999), list[Any]()
    policy.listen(heard.append)
    policy.ask([40.0])
    wrong = heard[0]._replace(value=np.array([4.0, 0.7]))
    with pytest.raises(InputError, match="must be the start"):
        made(share=0.999).apply(wrong)


def test_a_rehearsal_and_a_new_incumbent_begin_the_comparison_anew() -> None:
    policy = made(start=None)
    serve(policy, 100)
    assert policy.rehearsed(7).life.comparison.tally == Tally()
    assert policy.uplift().counted == 100
    rng = np.random.default_rng(0)
    log = {"age": rng.uniform(20, 80, 50), "price": rng.uniform(2, 3, 50)}
    log |= {"fee": rng.uniform(0, 1, 50), "payoff": rng.normal(size=50)}
    policy.learn_from(log)
    assert policy.uplift().counted == 0
    given = made()
    serve(given, 100)
    given.learn_from(log)
    assert given.uplift().counted == 100


def test_many_decisions_say_whose_they_are() -> None:
    many = made(share=0.5).ask_many([[30.0 + k] for k in range(40)])
    assert set(many.roles) == {"incumbent", "explored"}
    for role, value in zip(many.roles, many.values, strict=True):
        assert (value.tolist() == [3.3, 0.7]) == (role == "incumbent")
