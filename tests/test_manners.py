"""What a person sees who prints, lists or names things."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import continuarm as ca
from continuarm.errors import SettingsError

UNIT = ca.Box.unit(1)


def shop(**more: Any) -> ca.Problem:
    return ca.Problem(
        context=UNIT,
        decision=UNIT,
        mean_payoff=lambda x, y: -((y[0] - x[0]) ** 2),
        curvature=2.0,
        name="my shop",
        **more,
    )


def test_a_policy_says_how_much_it_has_learned() -> None:
    policy = ca.StaticKWSA(UNIT, UNIT, bins=4, step=1.0)
    parts = "Grid(bins=4) × KieferWolfowitz(step=1.0)"
    assert repr(policy) == (
        f"<StaticKWSA, payoffs learned: 0, bins made: 0, decisions open: 0; {parts}>"
    )
    policy.tell_many(policy.ask_many([[0.1], [0.9], [0.2]]), [1.0, 2.0, 3.0])
    policy.ask([0.5])
    assert repr(policy) == (
        f"<StaticKWSA, payoffs learned: 3, bins made: 3, decisions open: 1; {parts}>"
    )
    assert repr(policy.copy()) == repr(policy)


def test_the_repr_of_a_policy_names_the_options_that_were_given() -> None:
    bold = ca.SurfaceSampling(UNIT, UNIT, reach=None)
    assert repr(bold).endswith("; EvidenceTree() × ResponseSurface(degree=5)>")
    safe = "ResponseSurface(reach=0.1, bounded=True, level=True, calm=True, degree=5)>"
    assert repr(ca.SurfaceSampling(UNIT, UNIT)).endswith(safe)
    made = repr(ca.SurfaceSampling(UNIT, UNIT, memory=500, reach=None))
    assert "ResponseSurface(memory=500, degree=5)" in made


def test_the_repr_of_a_policy_can_be_seen_from_inside() -> None:
    """A debugger, or a listener that logs, prints while the policy is at work."""
    policy, seen = ca.SurfaceSampling(UNIT, UNIT, rng=0), []
    policy.listen(lambda event: seen.append(repr(policy)))
    policy.tell(policy.ask([0.5]), 1.0)
    assert len(seen) == 2


def test_policies_that_learn_nothing_say_what_they_do() -> None:
    assert repr(ca.Fixed(UNIT, UNIT, value=[0.25])) == "<Fixed: [0.25]>"
    assert repr(ca.Oracle(shop())) == "<Oracle of <Problem my shop: dx=1, dy=1>>"


def test_a_result_can_be_read() -> None:
    run = ca.simulate("static-kwsa", shop(), horizon=2000, replications=2, rng=0)
    error = run.standard_error[-1]
    assert repr(run) == (
        "<static-kwsa on my shop, 2 replications of 2,000 decisions: "
        f"regret {run.mean[-1]:.4g} ± {error:.4g}>"
    )
    page = run._repr_html_()
    assert page.startswith(
        "<p>static-kwsa on my shop, 2 replications of 2,000 decisions</p><table>"
    )
    assert page.count("<tr>") == len(run.checkpoints) + 1
    assert run.table()._repr_html_() in page
    alone = ca.simulate("fixed", shop(), horizon=10, rng=0)
    assert repr(alone).startswith("<fixed on my shop, 1 replication of 10 decisions: regret ")
    assert "±" not in repr(alone)


def test_names_are_escaped_where_a_result_is_a_page() -> None:
    run = ca.simulate(ca.Fixed(UNIT, UNIT), shop(), horizon=10, rng=0)
    named = ca.Result(**{**vars(run), "policy": "<b>"})
    assert "<b>" not in named._repr_html_()


def test_only_public_names_are_listed() -> None:
    code = """
import json
import continuarm as ca
ca.simulate("fixed", "kink", horizon=10)
print(json.dumps(dir(ca)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    listed = json.loads(done.stdout)
    assert listed == sorted([*ca.__all__, "__version__"])
    for name in listed:
        assert hasattr(ca, name)


def test_compare_calls_a_problem_by_its_name() -> None:
    found = ca.compare(["fixed", "static-kwsa"], [shop(), "kink"], horizons=[50], replications=2)
    assert [score.problem for score in found.scores] == ["my shop", "my shop", "kink", "kink"]
    assert "my shop" in str(found.table())
    assert repr(found) == (
        "<Comparison to static-kwsa of ['fixed', 'static-kwsa'] on ['my shop', 'kink']>"
    )
    assert found._repr_html_() == found.table().html()


def test_simulate_takes_settings_as_an_experiment_does() -> None:
    by_pair, by_function, by_hand = (
        ca.simulate(policy, shop(), horizon=300, rng=3).regret
        for policy in (
            ("static-kwsa", {"width": 0.3, "bins": 3}),
            ("static-kwsa", lambda horizon: {"width": 0.3, "bins": horizon // 100}),
            ca.StaticKWSA(UNIT, UNIT, bins=3, width=0.3, curvature=2.0),
        )
    )
    np.testing.assert_array_equal(by_pair, by_hand)
    np.testing.assert_array_equal(by_function, by_hand)
    for wrong, message in (
        ({"colour": 1}, "static-kwsa takes the settings"),
        (3, "settings must be given by name, but got 3"),
    ):
        with pytest.raises(SettingsError, match=message):
            ca.simulate(("static-kwsa", wrong), shop(), horizon=10)


def test_the_example_of_the_experiments_page_prints_a_regret(tmp_path: Path) -> None:
    page = Path(__file__).parent.parent / "docs" / "experiments.md"
    blocks = [part.partition("```")[0] for part in page.read_text().split("```python\n")[1:]]
    own = next(block for block in blocks if "ca.Experiment(" in block)
    script = tmp_path / "example.py"
    script.write_text("import continuarm as ca\n" + own)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=300
    )
    assert "regret" in done.stdout
    assert done.stdout.count("two-communities") + done.stdout.count("paper") >= 4


def test_the_readme_says_whose_speed_it_claims() -> None:
    readme = (Path(__file__).parent.parent / "README.md").read_text()
    line = next(line for line in readme.splitlines() if "10 million decisions" in line)
    assert "about two seconds for `static-kwsa`" in line
    assert "twenty to thirty for `recommended`" in line
