"""freeze and unfreeze: a bin answers with its best decision and learns nothing."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import continuarm as ca
from continuarm.cli import cli
from continuarm.errors import InputError
from continuarm.live import events

UNIT = ca.Box([0.0], [1.0], names=["x"])
PRICE = ca.Box([1.0], [9.0], names=["price"])


def play(policy: ca.Policy, n: int, seed: int = 0, jump: float = 0.5) -> None:
    """Payoffs whose best price is 3 below the jump of the context, and 7 above it."""
    rng = np.random.default_rng(seed)
    for x in rng.random(n):
        decision = policy.ask([x])
        gap = decision.value[0] - (3.0 if x < jump else 7.0)
        policy.tell(decision, float(-gap * gap + 0.1 * rng.standard_normal()))


def surface(n: int = 800, **options: Any) -> ca.Policy:
    policy = ca.SurfaceSampling(UNIT, PRICE, rng=0, **options)
    play(policy, n)
    return policy


def bin_of(policy: ca.Policy, number: int) -> ca.Bin:
    [found] = [one for one in policy.bins() if one.id == number]
    return found


def in_bin(policy: ca.Policy, number: int) -> list[float]:
    one = bin_of(policy, number)
    return [float(0.5 * (one.low[0] + one.high[0]))]


def test_a_frozen_bin_answers_with_its_best_decision_and_the_others_explore() -> None:
    policy = surface()
    first, second, *_ = policy.bins()
    policy.freeze(first)
    x, other = in_bin(policy, first.id), in_bin(policy, second.id)
    frozen = [policy.ask(x) for _ in range(5)]
    assert {decision.role for decision in frozen} == {"best"}
    assert {decision.value[0] for decision in frozen} == {policy.recommend(x)[0]}
    explored = [policy.ask(other) for _ in range(5)]
    assert {decision.role for decision in explored} == {"explored"}
    assert len({decision.value[0] for decision in explored}) == 5


def test_its_payoffs_are_counted_and_not_learned_also_of_decisions_asked_before() -> None:
    policy = surface()
    number = policy.bins()[0].id
    x = in_bin(policy, number)
    early = policy.ask(x)
    policy.freeze(number)
    before, late = bin_of(policy, number), policy.ask(x)
    state = policy.life.model.state.rows.copy()
    policy.tell(early, 1000.0)
    policy.tell(policy.ask(x), -1000.0)
    after = bin_of(policy, number)
    assert (after.told, after.asked) == (before.told + 2, before.asked + 2)
    assert after.progress == before.progress
    changed = np.argwhere(policy.life.model.state.rows != state)
    assert changed[:, 1].tolist() == [2]  # how many were told, of one row
    policy.unfreeze(number)
    rows = policy.life.model.state.rows.copy()
    policy.tell(late, 1000.0)  # decided while frozen
    assert np.array_equal(policy.life.model.state.rows, rows)
    policy.tell(policy.ask(x), 1.0)
    assert bin_of(policy, number).progress == before.progress + 1


def test_a_frozen_bin_neither_splits_nor_is_renewed_nor_replaced() -> None:
    """Without the freeze, the same payoffs change all bins; with it, not those that are frozen."""
    policy = surface(400)
    twin, number = policy.copy(), policy.bins()[0].id
    frozen = bin_of(policy, number)
    policy.freeze(number)
    for one in (policy, twin):
        for seed in range(4):  # all that was learned is wrong from now on
            rng = np.random.default_rng(seed)
            for x in rng.random(500):
                decision = one.ask([x])
                gap = decision.value[0] - (8.0 if x < 0.2 else 2.0)
                one.tell(decision, float(-gap * gap + 0.1 * rng.standard_normal()))
    assert number not in {one.id for one in twin.bins()}
    kept = bin_of(policy, number)
    assert np.array_equal(kept.best, frozen.best)
    assert (kept.low, kept.high, kept.progress) == (frozen.low, frozen.high, frozen.progress)
    others = {one.id for one in policy.bins()} - {number}
    assert min(others) > number  # the others did split


def test_no_newcomer_replaces_all_bins_while_one_is_frozen() -> None:
    """A world turned upside down, in which the twin begins anew with one bin."""

    def live(policy: ca.Policy) -> list[int]:
        rng, least = np.random.default_rng(5), []
        for x in rng.random(3000):
            decision = policy.ask([x])
            gap = decision.value[0] - (8.5 - 6.0 * x)
            policy.tell(decision, float(-gap * gap + 0.1 * rng.standard_normal()))
            least.append(policy.life.model.state.nodes[1, 3])
        return least

    policy = ca.SurfaceSampling(UNIT, PRICE, rng=3)
    play(policy, 3000, seed=1, jump=0.3)
    number = policy.bins()[-1].id
    twin = policy.copy()
    policy.freeze(number)
    roots = [live(one)[-1] for one in (policy, twin)]
    assert bin_of(policy, number).frozen
    assert number not in {one.id for one in twin.bins()}
    assert roots[0] <= number  # the first bin of the tree is an old one


@pytest.mark.parametrize("tree", [ca.Tree(split_after=(30, 30)), ca.EvidenceTree()])
def test_a_bin_that_has_split_is_refused_with_its_successors(tree: Any) -> None:
    learner = ca.ResponseSurface()
    policy = ca.Policy(UNIT, PRICE, partition=tree, learner=learner, rng=0)
    handles = dict[int, ca.Bin]()
    for k in range(40):
        play(policy, 25, seed=k)
        handles |= {one.id: one for one in policy.bins()}
    gone = set(handles) - {one.id for one in policy.bins()}
    assert gone
    before = policy.snapshot()
    for number in gone:
        inside = [
            str(one.id)
            for one in policy.bins()
            if one.low >= handles[number].low and one.high <= handles[number].high
        ]
        line = f"`bin` must be one that is there, but {number} is no more: "
        line += f"its contexts are in bins {', '.join(inside)}"
        for handle in (number, handles[number]):
            with pytest.raises(InputError, match=f"^{re.escape(line)}$"):
                policy.freeze(handle)
    assert policy.snapshot() == before
    for number in set(handles) - gone:  # those that are there are as they were
        policy.freeze(handles[number])


def test_after_a_newcomer_the_bins_before_it_are_refused() -> None:
    policy = ca.SurfaceSampling(UNIT, PRICE, rng=3)
    play(policy, 3000, seed=1, jump=0.3)
    number, rng = policy.bins()[-1].id, np.random.default_rng(5)
    while policy.life.model.state.nodes[0, 0] != 2.0:  # until there is the root alone
        x = rng.random()
        decision = policy.ask([x])
        gap = decision.value[0] - (8.5 - 6.0 * x)
        policy.tell(decision, float(-gap * gap + 0.1 * rng.standard_normal()))
    [only] = policy.bins()
    assert only.id > number
    with pytest.raises(InputError, match=f"but {number} is no more.*in bins {only.id}$"):
        policy.freeze(number)
    policy.freeze(only)


def test_before_the_first_payoff_there_is_no_bin_to_freeze() -> None:
    policy = ca.SurfaceSampling(ca.Box.unit(1), ca.Box.unit(1), rng=0)
    assert policy.bins() == []
    with pytest.raises(InputError, match=r"by a first payoff, which is not told yet, but got 1$"):
        policy.freeze(1)


def test_what_is_no_bin_of_this_policy_is_refused_and_changes_nothing() -> None:
    policy, before = surface(), surface().snapshot()
    newest = max(one.id for one in policy.bins())
    wrong: list[tuple[Any, str]] = [
        (0, f"one that is there, from 1 to {newest}, but got 0"),
        (10**9, "but got 1000000000"),
        (-1, "but got -1"),
        (True, "but got True"),
        (1.0, "but got 1.0"),
        ("3", "but got '3'"),
        (None, "but got None"),
        (policy.bins()[0]._replace(high=np.array([0.123])), "must be of this policy"),
    ]
    for handle, said in wrong:
        for verb in (policy.freeze, policy.unfreeze):
            with pytest.raises(InputError, match=re.escape(said)):
                verb(handle)
    assert policy.snapshot() == before


def test_policies_of_stencils_refuse_in_one_line() -> None:
    policy = ca.StaticKWSA(UNIT, PRICE, bins=2, step=1.0, rng=0)
    policy.ask([0.2])
    with pytest.raises(InputError, match=r"^a bin can be frozen where .* `pause\(\)`$"):
        policy.freeze(policy.bins()[0])


def test_a_pause_and_the_share_come_first_and_limits_always_hold() -> None:
    policy = surface(share=0.5)
    number = policy.bins()[0].id
    x = in_bin(policy, number)
    policy.freeze(number)
    roles = [policy.ask(x).role for _ in range(40)]
    assert set(roles) == {"best", "incumbent"}
    best = policy.recommend(x)[0]
    limited = [policy.ask(x, within={"price": (8.0, 9.0)}) for _ in range(20)]
    assert best < 8.0
    assert {(d.role, d.value[0]) for d in limited} <= {("best", 8.0), ("incumbent", 8.0)}
    before = policy.uplift().counted
    policy.forget_all()
    for _ in range(30):
        policy.tell(policy.ask(x), 1.0)
    assert policy.uplift().counted == before + 30  # compared, though not learned
    policy.pause()
    assert {policy.ask(x).role for _ in range(20)} == {"incumbent"}


def test_arms_of_a_frozen_bin_are_tried_again_when_it_is_thawed() -> None:
    policy = ca.UniformUCB(UNIT, PRICE, bins=2, arms=3, rng=0)
    open_ = policy.ask([0.1])
    number = policy.bins()[0].id
    policy.freeze(number)
    policy.tell(open_, 5.0)
    assert policy.ask([0.1]).value[0] == policy.recommend([0.1])[0]
    assert (bin_of(policy, number).told, bin_of(policy, number).progress) == (1, 0)
    policy.unfreeze(number)
    tried = [float(policy.ask([0.1]).value[0]) for _ in range(3)]
    assert sorted(set(tried)) == sorted(set(tried) | {float(open_.value[0])})
    assert ca.Policy.from_snapshot(policy.snapshot()).snapshot() == policy.snapshot()


def test_it_survives_files_copies_rehearsals_and_exports(tmp_path: Path) -> None:
    policy = surface()
    numbers = [one.id for one in policy.bins()[:2]]
    for number in numbers:
        policy.freeze(number)
    policy.save(tmp_path / "policy")
    others = [ca.load(tmp_path / "policy"), policy.copy(), policy.rehearsed(rng=7)]
    for other in others:
        assert [one.id for one in other.bins() if one.frozen] == numbers
        assert other.ask(in_bin(other, numbers[0])).role == "best"
    others[1].unfreeze(numbers[0])  # a copy goes its own way
    assert bin_of(policy, numbers[0]).frozen
    table = json.loads(policy.export())
    assert sum(bin_.get("frozen", False) for bin_ in table["bins"]) == 2
    reader = ca.Reader(policy.export())
    for x in np.random.default_rng(0).random((20, 1)):
        assert reader.decide(x.tolist()) == pytest.approx(policy.recommend(x).tolist(), abs=1e-9)


def test_both_are_events_and_only_where_something_changes() -> None:
    policy, happened = surface(), list[Any]()
    number = policy.bins()[0].id
    before = policy.snapshot()
    policy.listen(happened.append)
    for verb in (policy.freeze, policy.freeze, policy.unfreeze, policy.unfreeze):
        verb(number)
    assert happened == [events.Frozen(number), events.Unfrozen(number)]
    assert policy.snapshot() == before
    plain = [events.to_plain(event) for event in happened]
    assert plain[0] == {"event": "frozen", "bin": number}
    assert [events.from_plain(one) for one in plain] == happened


@pytest.mark.parametrize("bin_", [0, 10**9, True, 1.5, "1", None])
def test_events_of_bins_that_are_not_there_are_refused(bin_: Any) -> None:
    policy = surface(100)
    for kind in (events.Frozen, events.Unfrozen):
        with pytest.raises(InputError):
            policy.apply(kind(bin_))


def test_an_event_must_be_as_the_freeze_says() -> None:
    policy, happened = surface(100), list[Any]()
    policy.listen(happened.append)
    policy.ask([0.5])
    asked = happened[0]
    later = asked._replace(id=asked.id + 1)
    with pytest.raises(InputError, match="needs limits"):
        policy.apply(later._replace(role="best"))
    policy.freeze(asked.bin)
    with pytest.raises(InputError, match="is frozen and explores nothing, but got 'explored'"):
        policy.apply(later)
    policy.apply(later._replace(role="best"))


class Fixed:
    """Decides as a policy would recommend now."""

    def __init__(self, policy: ca.Policy) -> None:
        self.policy = policy

    def ask(self, context: Any) -> Any:
        return self.policy.recommend(context)

    def tell(self, decision: Any, payoff: float) -> None:
        pass


def test_a_simulation_keeps_what_is_frozen() -> None:
    """All bins frozen: the regret is that of what is recommended, though payoffs are told."""
    problem = ca.problem("two-communities")
    policy, rng = ca.SurfaceSampling(problem.context, problem.decision, rng=0), np.random
    for x in rng.default_rng(0).random((300, problem.context.dim)):
        decision = policy.ask(problem.context.from_unit(x))
        policy.tell(decision, float(-np.sum(problem.decision.to_unit(decision.value) ** 2)))
    loose = ca.simulate(policy, problem, horizon=300, rng=1)
    for one in policy.bins():
        policy.freeze(one)
    before = policy.snapshot()
    frozen, fixed = (
        ca.simulate(one, problem, horizon=300, rng=1)
        for one in (policy, lambda context, decision: Fixed(policy))
    )
    assert policy.snapshot() == before
    assert frozen.regret[0].tolist() == pytest.approx(fixed.regret[0].tolist(), abs=1e-9)
    assert frozen.regret[0, -1] != pytest.approx(loose.regret[0, -1], rel=0.01)


def test_explain_and_inspect_say_so(tmp_path: Path) -> None:
    policy = surface()
    number = policy.bins()[0].id
    x = in_bin(policy, number)
    assert not policy.explain(x)["frozen"]
    policy.freeze(number)
    explanation = policy.explain(x)
    assert explanation["frozen"]
    assert "freeze: its bin answers with its best decision" in str(explanation)
    policy.save(tmp_path / "policy")
    done = CliRunner().invoke(cli, ["inspect", str(tmp_path / "policy")])
    assert re.search(rf"frozen bins +{number}\b", done.output), done.output


def test_many_frozen_bins_are_found() -> None:
    policy = ca.Policy(UNIT, PRICE, partition=ca.Grid(60), learner=ca.ResponseSurface(), rng=0)
    play(policy, 1500)
    numbers = [one.id for one in policy.bins()]
    assert len(numbers) == 60
    order = np.random.default_rng(0).permutation(numbers).tolist()
    for k, number in enumerate(order):
        policy.freeze(number)
        frozen = {one.id for one in policy.bins() if one.frozen}
        assert frozen == set(order[: k + 1])
    for number in order:
        assert policy.ask(in_bin(policy, number)).role == "best"


def test_what_a_frozen_bin_answers_is_allowed() -> None:
    """Spaced prices and coupled limits hold, and those of the request."""
    box = ca.Box([1.0, 0.0], [9.0, 4.0], names=["price", "fee"], spacing=[0.25, 0.0])
    allowed = ca.Polytope(box, ["price + fee <= 8"])
    policy = ca.SurfaceSampling(UNIT, allowed, max_move=3.0, rng=0)
    rng = np.random.default_rng(0)
    for x in rng.random(200):
        decision = policy.ask([x])
        gap = decision.value - np.array([7.0, 3.0])
        policy.tell(decision, float(-gap @ gap + 0.1 * rng.standard_normal()))
    policy.renew_reference()
    for one in policy.bins():
        policy.freeze(one)
    for x in rng.random(20):
        for within in (None, {"fee": (0.3, 0.7)}):
            decision = policy.ask([x], within=within)
            assert decision.role == "best"
            assert allowed.allows(decision.value)
            assert np.array_equal(decision.value, policy.recommend([x], within=within))
