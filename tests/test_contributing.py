"""The exercises of CONTRIBUTING.md, in a copy of the package: how many files they take."""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import continuarm as ca
from tests.worlds import ROOT

LEARNER = '''
"""A walk in one bin: try near the best decision so far, move to what paid more than usual."""

from dataclasses import dataclass
from typing import NamedTuple

from continuarm import checks
from continuarm.core.compiling import Array, compiled, copy_into
from continuarm.core.learners.protocol import Learner, register
from continuarm.core.request import (
    ALONE,
    UNFORESEEN,
    Foreseen,
    Observation,
    Request,
    clip_into,
)

__all__ = ["Wandering", "WanderingConfig"]

SEEN, USUAL, HERE = 0, 1, 2  # a row: payoffs, their mean, and where the walk is


@dataclass(frozen=True, kw_only=True)
class Wandering:
    """Try near the best decision so far; `width` is the spread of the first tries."""

    width: float = 0.3

    def __post_init__(self) -> None:
        checks.normalise(self, width=checks.number("width", self.width, most=1.0))

    def configured(self, dx: int, dy: int) -> "WanderingConfig":
        """The numbers of these options."""
        return WanderingConfig(dy, self.width)


class WanderingConfig(NamedTuple):
    """The same as numbers."""

    dy: int
    width: float


def width(cfg: WanderingConfig) -> int:
    return HERE + cfg.dy


def draws(cfg: WanderingConfig) -> int:
    return cfg.dy


@compiled
def init(cfg: WanderingConfig, row: Array, start: Array) -> None:
    row[SEEN], row[USUAL] = 0.0, 0.0
    copy_into(row[HERE:], start)


@compiled
def decide(
    cfg: WanderingConfig, row: Array, pool: Array, request: Request, work: Array, y: Array
) -> int:
    spread = cfg.width / (1.0 + row[SEEN]) ** 0.25
    for i in range(cfg.dy):
        y[i] = row[HERE + i] + spread * request.xi[i]
    clip_into(request.region, y)
    return ALONE


@compiled
def tell(
    cfg: WanderingConfig, row: Array, pool: Array, seen: Observation, work: Array
) -> Foreseen:
    if row[SEEN] > 0.0 and seen.z > row[USUAL]:
        for i in range(cfg.dy):
            row[HERE + i] += (seen.y[i] - row[HERE + i]) / (1.0 + row[SEEN]) ** 0.5
    row[SEEN] += 1.0
    row[USUAL] += seen.z / row[SEEN] - row[USUAL] / row[SEEN]
    return UNFORESEEN


@compiled
def best(cfg: WanderingConfig, row: Array, request: Request, work: Array, y: Array) -> None:
    copy_into(y, row[HERE : HERE + cfg.dy])
    clip_into(request.region, y)


@compiled
def inherit(
    cfg: WanderingConfig, parent: Array, child: Array, low: Array, high: Array, keep: float
) -> None:
    copy_into(child, parent)
    child[SEEN] = 0.0


@compiled
def progress(cfg: WanderingConfig, row: Array) -> int:
    return int(row[SEEN])


register(WanderingConfig, Learner.of(globals()))
'''
CONSTRUCTOR = '''
from typing import Unpack

from continuarm.box import Box
from continuarm.core.learners.wandering import Wandering
from continuarm.core.partitions.grid import Grid
from continuarm.live.named.options import PolicyOptions
from continuarm.live.policy import Policy


def RandomWalk(
    context: Box, decision: Box, *, bins: int = 8, **options: Unpack[PolicyOptions]
) -> Policy:
    """Walk in each bin."""
    return Policy(context, decision, partition=Grid(bins), learner=Wandering(), **options)


register_policy("random-walk", RandomWalk)
'''
BASELINE = '''
"""A baseline without bins: what paid best near this context, shaken a little."""

from typing import NamedTuple

import numpy as np


class Tried(NamedTuple):
    """A decision."""

    context: object
    value: object


class Nearest:
    """The best of the ten decisions that were made nearest to a context."""

    def __init__(self, context, decision, *, rng=None, spread=0.1):
        self.decision, self.spread = decision, spread
        self.rng = np.random.default_rng(rng)
        self.x, self.y, self.z = [], [], []

    def recommend(self, context):
        if not self.z:
            return self.decision.centre
        near = np.argsort(np.linalg.norm(np.array(self.x) - context, axis=1))[:10]
        return self.y[near[np.argmax(np.array(self.z)[near])]]

    def ask(self, context):
        here = self.decision.to_unit(self.recommend(context))
        unit = np.clip(here + self.spread * self.rng.standard_normal(len(here)), 0, 1)
        return Tried(context, self.decision.from_unit(unit))

    def tell(self, decision, payoff):
        self.x.append(decision.context)
        self.y.append(decision.value)
        self.z.append(payoff)
'''


def copied(tmp_path: Path) -> Path:
    """A copy of the sources, without what was compiled."""
    package = tmp_path / "src" / "continuarm"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "continuarm", package, ignore=ignored)
    return package


def changed(package: Path) -> list[str]:
    """The files that differ from ours."""
    ours = ROOT / "src" / "continuarm"
    return sorted(
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if not (ours / (name := path.relative_to(package))).exists()
        or path.read_text() != (ours / name).read_text()
    )


def run(package: Path, code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        cwd=package.parent,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_learner_with_a_policy_from_it_takes_three_files(tmp_path: Path) -> None:
    package = copied(tmp_path)
    (package / "core" / "learners" / "wandering.py").write_text(LEARNER)
    registry = package / "live" / "registry.py"
    given = registry.read_text()
    imported = "from continuarm.core.learners.wandering import Wandering\n"
    mark = "from continuarm.core.partitions.evidence_tree"
    given = given.replace(mark, imported + mark)
    last = "        SmoothSurface,\n"
    registry.write_text(given.replace(last, f"{last}        Wandering,\n"))
    with (package / "live" / "named" / "__init__.py").open("a") as named:
        named.write(CONSTRUCTOR)
    assert len(changed(package)) == 3
    code = """
import continuarm as ca
from continuarm.core.learners.wandering import Wandering
ca.testing.check_learner(Wandering(width=0.2))
ca.testing.check_policy("random-walk")
policy = ca.simulate("random-walk", "kink", horizon=100, rng=0).policies[0]
policy.save("saved")
print(ca.load("saved").recommend([0.5]).tolist() == policy.recommend([0.5]).tolist())
print(ca.compare(["random-walk bins=1|4", "fixed"], ["kink"], horizons=[50]).table())
"""
    printed = run(package, code)
    assert printed.startswith("True\n")
    assert "random-walk bins=1|4" in printed


def test_a_baseline_without_bins_takes_two_files(tmp_path: Path) -> None:
    package = copied(tmp_path)
    (package / "live" / "named" / "nearest.py").write_text(BASELINE)
    with (package / "live" / "named" / "__init__.py").open("a") as named:
        named.write(
            "from continuarm.live.named.nearest import Nearest\n\n"
            'register_policy("nearest", Nearest)\n'
        )
    assert len(changed(package)) == 2
    code = """
import continuarm as ca
ca.testing.check_policy("nearest")
print(ca.compare(["nearest spread=0.1|0.2", "fixed"], ["kink"], horizons=[50]).table())
"""
    assert "nearest spread=0.1|0.2" in run(package, code)


def test_a_learner_without_options_can_be_registered() -> None:
    @dataclass(frozen=True)
    class Plain:
        def configured(self, dx: int, dy: int) -> Any:
            return None

    assert ca.register(Plain) is Plain
