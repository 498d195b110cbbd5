"""What a policy has learned, in words and as tables."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import continuarm as ca
from continuarm.cli import main

CONTEXT = ca.Box([18, 0], [90, 2.5e5], names=["age", "income"])
DECISION = ca.Box([1.0, 0.0], [9.0, 4.0], names=["price", "fee"])
START = {"price": 3.3, "fee": 1.0}
CUSTOMER = ["--context", "age=37", "--context", "income=152000"]


def served(decisions: int, **options: Any) -> ca.Policy:
    """The best price is 3 below an income of 120,000, and 5 above; the best fee is 0.5."""
    policy = ca.SurfaceSampling(CONTEXT, DECISION, start=START, rng=1, **options)
    rng = np.random.default_rng(0)
    for _ in range(decisions):
        customer = {"age": rng.uniform(18, 90), "income": rng.uniform(0, 2.5e5)}
        decision = policy.ask(customer)
        price, fee = decision.value
        best = 3.0 + 2.0 * (customer["income"] > 1.2e5)
        policy.tell(decision, 6.0 - (price - best) ** 2 - (fee - 0.5) ** 2 + rng.normal())
    return policy


@pytest.fixture(scope="module")
def saved(tmp_path_factory: Any) -> tuple[ca.Policy, Path]:
    policy = served(4000, share=0.1)
    path = tmp_path_factory.mktemp("shop") / "shop.continuarm"
    policy.save(path)
    return policy, path


def run(monkeypatch: Any, capsys: Any, *arguments: str) -> tuple[str, str, int]:
    monkeypatch.setattr("sys.argv", ["continuarm", *arguments])
    code = 0
    try:
        main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    printed = capsys.readouterr()
    return printed.out, printed.err, code


def test_an_explanation_says_in_words_what_its_numbers_say(saved: tuple[ca.Policy, Path]) -> None:
    policy, _ = saved
    found = policy.explain({"age": 37, "income": 152_000})
    lines = str(found).splitlines()
    price, fee = policy.recommend({"age": 37, "income": 152_000})
    assert lines[0] == (
        "For age 37, income 152,000 the best decision known is "
        f"price {round(price, 3):g}, fee {round(fee, 3):g}."
    )
    assert lines[1] == "What is done today is price 3.3, fee 1."
    assert lines[2].startswith("Its bin, income from ")
    assert f"{found['payoffs']:,} payoffs" in lines[2]
    words = (
        "Income matters, because bins are cut along it; in this bin nothing shows that age does."
    )
    assert lines[-3] == words
    assert lines[-2] == "Guard reach: price within 0.8 and fee within 0.4 of the best known."
    assert lines[-1].startswith("Guard share: 10 % of decisions")
    assert found["start"] == [3.3, 1.0]
    slopes, errors = (np.array(found[key]) for key in ("slope", "slope_error"))
    np.testing.assert_allclose(np.array(found["per_unit"]) * [8.0, 4.0], slopes)
    np.testing.assert_allclose(np.array(found["per_unit_error"]) * [8.0, 4.0], errors)
    assert json.loads(json.dumps(found)) == dict(found)


def test_one_more_unit_brings_what_the_payoff_gains() -> None:
    """Far from the best, the slope is -2 (v - best) per unit, and is told from noise."""
    policy = ca.SurfaceSampling(ca.Box.unit(0), ca.Box([0.0], [10.0], names=["bid"]), rng=0)
    rng = np.random.default_rng(0)
    for _ in range(300):
        decision = policy.ask()
        policy.tell(decision, 0.7 * float(decision.value[0]) + 0.1 * rng.normal())
    found = policy.explain(within={"bid": (2.0, 3.0)})
    assert found["per_unit"][0] == pytest.approx(0.7, abs=4.0 * found["per_unit_error"][0])
    assert "One more unit of bid is expected to bring +0." in str(found)
    assert "in payoff" in str(found)
    assert str(found).startswith("The best decision known is bid 3.")


def test_every_policy_explains_itself() -> None:
    box, price = ca.Box.unit(1), ca.Box.unit(2)
    policies = [
        ca.SurfaceSampling(box, price, rng=0),
        ca.StaticKWSA(box, price, bins=2, step=1.0),
        ca.AdaptiveKWSA(box, price, horizon=1000, curvature=1.0, curvature_max=4.0),
        ca.UniformUCB(box, price, bins=2, arms=3),
        ca.RobbinsMonro(box, price),
    ]
    for policy in policies:
        for k in range(60):
            slope = {"gradient": [0.1, 0.2]} if policy.uses_gradient else {}
            policy.tell(policy.ask([k / 60]), float(k % 5), **slope)
        text = str(policy.explain([0.2]))
        assert text.startswith("For 0.2 the best decision known is (")
        own = "from all contexts" if policy.has_one_bin else "payoffs of its own"
        assert own in text
    policies[0].pause()
    assert str(policies[0].explain([0.2])).endswith("every decision is what is done today.")


def test_inspect_prints_what_was_learned(
    saved: tuple[ca.Policy, Path], monkeypatch: Any, capsys: Any
) -> None:
    policy, path = saved
    out, _, code = run(monkeypatch, capsys, "inspect", str(path), *CUSTOMER)
    assert code == 0
    assert str(policy.explain({"age": 37, "income": 152_000})) in out
    assert str(policy.uplift()) in out
    for one in policy.bins():
        assert any(
            line.split()[:1] == [str(one.id)] and f"{one.told:,}" in line
            for line in out.splitlines()
        )
    before = path.read_bytes()
    out, _, code = run(monkeypatch, capsys, "inspect", str(path), "--json", *CUSTOMER)
    found = json.loads(out)
    assert found["policy"]["decisions asked"] == 4000
    assert len(found["bins"]) == len(policy.bins())
    assert found["explanation"] == dict(policy.explain({"age": 37, "income": 152_000}))
    assert path.read_bytes() == before


def test_inspect_says_what_holds_decisions_back(
    tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    box = ca.Box([1.0, 0.0], [9.0, 4.0], names=["price", "fee"], spacing={"fee": 0.05})
    limited = ca.Polytope(box, ["fee <= price - 1"])
    guards: dict[str, Any] = {"share": 0.1, "ttl": 500, "ttl_seconds": 60.0}
    guards |= {"max_move": {"price": 0.5}, "reach": 0.1}
    expected = {
        "start": "price 3.3, fee 1",
        "reach": "price ± 0.8, fee ± 0.4",
        "max_move": "price ± 0.5 from the reference",
        "share of the incumbent": 0.1,
        "spacing": "fee in steps of 0.05",
        "coupled limits": "`fee <= price - 1`",
        "ttl": "500 decisions or 60 seconds",
    }
    middle = "not given: the middle of the box, price 5, fee 2, stands for what is done today"
    plain: dict[str, Any] = {"reach": None, "ttl": None}
    for decision, options, rows in (
        (limited, guards | {"start": START}, expected),
        (limited, guards, expected | {"start": middle}),
        (DECISION, plain | {"share": 0.2}, {"start": middle, "share of the incumbent": 0.2}),
        (DECISION, plain, {}),
    ):
        ca.SurfaceSampling(CONTEXT, decision, rng=1, **options).save(tmp_path / "shop")
        out, _, _ = run(monkeypatch, capsys, "inspect", str(tmp_path / "shop"), "--json")
        found = json.loads(out)["policy"]
        assert {name: found[name] for name in expected if name in found} == rows


def test_inspect_shows_the_largest_bins_unless_asked_for_all(
    tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    policy = ca.StaticKWSA(ca.Box.unit(1), ca.Box.unit(1), bins=30, step=1.0)
    for k in range(90):
        policy.tell(policy.ask([k / 90]), 1.0)
    policy.save(tmp_path / "many")
    out, _, _ = run(monkeypatch, capsys, "inspect", str(tmp_path / "many"))
    assert "and 10 more bins: --all" in out
    out, _, _ = run(monkeypatch, capsys, "inspect", str(tmp_path / "many"), "--all")
    assert "more bins" not in out
    assert "dimension 0: under 0.033" in out
    out, _, _ = run(monkeypatch, capsys, "inspect", str(tmp_path / "many"), "--context", "0=0.5")
    assert "For 0.5 the best decision known is 0.5." in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "a saved policy must exist"),
        (["FILE", "--context", "age=300", "--context", "income=1"], "`18.0 <= age <= 90.0`"),
        (["FILE", "--context", "age=30"], "income"),
        (["FILE", "--context", "age"], "`NAME=NUMBER` is needed"),
        (["FILE", "--context", "age=1", "--context", "age=2"], "once for each name"),
        (["FILE", "--context", "age=old", "--context", "income=1"], "`NAME=NUMBER` is needed"),
    ],
)
def test_what_cannot_be_inspected_is_said_in_one_line(
    saved: tuple[ca.Policy, Path],
    arguments: list[str],
    message: str,
    monkeypatch: Any,
    capsys: Any,
) -> None:
    given = [str(saved[1]) if one == "FILE" else one for one in arguments]
    out, error, code = run(monkeypatch, capsys, "inspect", *given)
    assert code != 0
    assert out == ""
    assert message in error
    assert error.count("\n") == 1
