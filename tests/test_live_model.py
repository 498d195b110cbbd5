"""Asks, tells, forgets, saves, loads and splits in any order, against a plain model."""

import tempfile
from pathlib import Path
from typing import Any, Protocol

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import continuarm as ca
from continuarm.errors import UnknownDecisionError
from tests.worlds import check_state

TTL = 23
PAYOFFS = st.floats(-2.0, 2.0)
CONTEXTS = st.sampled_from([0.0, 0.1, 0.3, 0.49, 0.5, 0.7, 0.99, 1.0])


class PlainBin:
    """A bin of Algorithm 3 in one context dimension, written for reading."""

    def __init__(self, low: float, high: float, level: int, iterate: list[float]) -> None:
        self.low, self.high, self.level = low, high, level
        self.iterate = list(iterate)
        self.done = self.opened = 0
        self.stencils: list[dict[str, Any]] = []  # the last one is the newest
        self.waiting: list[dict[str, Any]] = []  # those with returned slots, the last one first
        self.halves: dict[bool, PlainBin] | None = None


class PlainTree:
    """AdaptiveKWSA with alternating probes, dx = 1."""

    def __init__(self, dy: int, step: float, width: float, split_after: list[int]) -> None:
        self.dy, self.step, self.width, self.split_after = dy, step, width, split_after
        self.root = PlainBin(0.0, 1.0, 0, [0.5] * dy)

    def bin_of(self, x: float, make: bool) -> PlainBin:
        found = self.root
        while found.halves is not None:
            middle = (found.low + found.high) / 2
            above = x >= middle
            if above not in found.halves:
                if not make:
                    break
                ends = (middle, found.high) if above else (found.low, middle)
                found.halves[above] = PlainBin(*ends, found.level + 1, found.iterate)
            found = found.halves[above]
        return found

    def ask(self, x: float) -> tuple[list[float], tuple[PlainBin, dict[str, Any], int]]:
        bin_ = self.bin_of(x, make=True)
        while bin_.waiting and len(bin_.waiting[-1]["returned"]) == self.dy + 1:
            dropped = bin_.waiting.pop()
            bin_.stencils = [s for s in bin_.stencils if s is not dropped]
        if bin_.waiting:
            stencil = bin_.waiting[-1]
            slot = min(stencil["returned"])
            stencil["returned"].remove(slot)
            if not stencil["returned"]:
                bin_.waiting.pop()
        else:
            if not bin_.stencils or bin_.stencils[-1]["out"] == self.dy + 1:
                bin_.stencils.append(self.stencil(bin_))
            stencil = bin_.stencils[-1]
            slot = stencil["out"]
            stencil["out"] += 1
        y = list(stencil["centre"])
        if slot > 0:
            y[slot - 1] += stencil["offsets"][slot - 1]
        return y, (bin_, stencil, slot)

    def stencil(self, bin_: PlainBin) -> dict[str, Any]:
        width = self.width / np.sqrt(np.sqrt(float(bin_.done + 1)))
        sign = -1.0 if bin_.opened % 2 else 1.0
        bin_.opened += 1
        inside = [0.0 <= y + sign * width <= 1.0 for y in bin_.iterate]
        return {
            "centre": list(bin_.iterate),
            "offsets": [sign * width if ok else -sign * width for ok in inside],
            "opened_at": bin_.done,
            "payoffs": {},
            "returned": set(),
            "out": 0,
        }

    def tell(self, kept: tuple[PlainBin, dict[str, Any], int], payoff: float) -> None:
        bin_, stencil, slot = kept
        stencil["payoffs"][slot] = payoff
        if len(stencil["payoffs"]) < self.dy + 1:
            return
        bin_.stencils = [s for s in bin_.stencils if s is not stencil]
        step = self.step / (bin_.done + 1.0 + 4.0 * (bin_.done - stencil["opened_at"]))
        for i in range(self.dy):
            rise = stencil["payoffs"][i + 1] - stencil["payoffs"][0]
            moved = bin_.iterate[i] + step * (rise / stencil["offsets"][i])
            bin_.iterate[i] = min(max(moved, 0.0), 1.0)
        bin_.done += 1
        if bin_.level < len(self.split_after) and bin_.done >= self.split_after[bin_.level]:
            bin_.halves = bin_.halves or {}
            bin_.waiting = []

    def forget(self, kept: tuple[PlainBin, dict[str, Any], int]) -> None:
        bin_, stencil, slot = kept
        if bin_.halves is None:
            if not stencil["returned"]:
                bin_.waiting.append(stencil)
            stencil["returned"].add(slot)

    def recommend(self, x: float) -> list[float]:
        return self.bin_of(x, make=False).iterate


class Model(Protocol):
    """What the right answers are."""

    def ask(self, x: float) -> tuple[Any, Any]:
        """The value to expect, and what the model wants to be told with it."""

    def tell(self, kept: Any, payoff: float) -> None: ...

    def forget(self, kept: Any) -> None: ...

    def recommend(self, x: float) -> Any: ...


class Twin:
    """The model of the recommended policy is one that was never saved, told the same."""

    def __init__(self) -> None:
        self.policy = ca.SurfaceSampling(ca.Box.unit(1), ca.Box.unit(1), rng=3, ttl=None)
        self.tell, self.forget = self.policy.tell, self.policy.forget

    def ask(self, x: float) -> tuple[Any, Any]:
        decision = self.policy.ask([x])
        return decision.value, decision

    def recommend(self, x: float) -> Any:
        return self.policy.recommend([x])


class Live(RuleBasedStateMachine):
    """What both machines do."""

    policy: Any
    model: Model

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.open: dict[int, Any] = {}
        self.closed: list[Any] = []
        self.asked = 0

    def teardown(self) -> None:
        self.folder.cleanup()

    @rule(x=CONTEXTS)
    def ask(self, x: float) -> None:
        if self.asked - TTL in self.open:
            decision, kept = self.open.pop(self.asked - TTL)
            self.closed.append(decision)
            self.model.forget(kept)
        value, kept = self.model.ask(x)
        decision = self.policy.ask([x])
        assert decision.id == self.asked
        np.testing.assert_array_equal(decision.value, value)
        self.open[self.asked] = (decision, kept)
        self.asked += 1

    @rule(x=CONTEXTS, payoff=PAYOFFS, n=st.integers(1, 12))
    def ask_and_tell(self, x: float, payoff: float, n: int) -> None:
        for k in range(n):
            self.ask(x)
            decision, kept = self.open.pop(self.asked - 1)
            self.closed.append(decision)
            self.policy.tell(decision, payoff * (k % 3))
            self.model.tell(kept, payoff * (k % 3))

    @precondition(lambda self: self.open)
    @rule(data=st.data(), payoff=PAYOFFS, as_text=st.booleans())
    def tell(self, data: Any, payoff: float, as_text: bool) -> None:
        decision, kept = self.open.pop(data.draw(st.sampled_from(sorted(self.open))))
        self.closed.append(decision)
        if as_text:
            decision = ca.Decision.from_json(decision.to_json())
        self.policy.tell(decision, payoff)
        self.model.tell(kept, payoff)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def forget(self, data: Any) -> None:
        decision, kept = self.open.pop(data.draw(st.sampled_from(sorted(self.open))))
        self.closed.append(decision)
        self.policy.forget(decision)
        self.model.forget(kept)

    @precondition(lambda self: self.closed)
    @rule(data=st.data())
    def repeat(self, data: Any) -> None:
        decision = data.draw(st.sampled_from(self.closed))
        with pytest.raises(UnknownDecisionError):
            self.policy.tell(decision, 1.0)
        with pytest.raises(UnknownDecisionError):
            self.policy.forget(decision)

    @rule(x=CONTEXTS)
    def recommend(self, x: float) -> None:
        np.testing.assert_array_equal(self.policy.recommend([x]), self.model.recommend(x))

    @rule()
    def save_and_load(self) -> None:
        path = Path(self.folder.name) / "policy"
        self.policy.save(path)
        self.policy = ca.load(path)

    @invariant()
    def the_state_holds_numbers(self) -> None:
        check_state(self.policy)

    @invariant()
    def as_many_are_open(self) -> None:
        assert self.policy.open_decisions == len(self.open)


class LiveTree(Live):
    @initialize(dy=st.integers(1, 3))
    def start(self, dy: int) -> None:
        self.model = PlainTree(dy, 0.3, 0.2, [2, 3])
        self.policy = ca.AdaptiveKWSA(
            ca.Box.unit(1), ca.Box.unit(dy), step=0.3, depth=2, split_after=[2, 3],
            probe="alternate", ttl=TTL,
        )  # fmt: skip


class LiveSurface(Live):
    @initialize()
    def start(self) -> None:
        self.model = Twin()
        self.policy = ca.SurfaceSampling(ca.Box.unit(1), ca.Box.unit(1), rng=3, ttl=TTL)


LiveTree.TestCase.settings = settings(max_examples=60, stateful_step_count=60)
LiveSurface.TestCase.settings = settings(max_examples=25, stateful_step_count=60)
test_adaptive_kwsa = LiveTree.TestCase
test_surface_sampling = LiveSurface.TestCase
