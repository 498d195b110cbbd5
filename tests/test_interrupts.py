"""Signal handlers that raise: a verb is done whole, or nothing has changed."""

import gc
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import continuarm as ca
from continuarm.errors import ContinuarmError

UNIT = ca.Box([0.0], [1.0], names=["x"])
PRICE = ca.Box([0.0], [1.0], names=["price"])
MAKERS: dict[str, Callable[[], ca.Policy]] = {
    "stencils": lambda: ca.StaticKWSA(UNIT, PRICE, bins=2, step=1.0, ttl=4, rng=0),
    "surface": lambda: ca.SurfaceSampling(UNIT, PRICE, ttl=4, rng=0),
    "reach": lambda: ca.SurfaceSampling(UNIT, PRICE, reach=0.1, ttl=4, rng=0),
    "near": lambda: ca.SurfaceSampling(UNIT, PRICE, max_move=0.1, ttl=4, rng=0),
    "arms": lambda: ca.UniformUCB(UNIT, PRICE, bins=2, arms=3, ttl=4, missing=0.0, rng=0),
    "gradients": lambda: ca.RobbinsMonro(UNIT, PRICE, ttl=4, rng=0),
}
LOG = {"x": [0.1, 0.2, 0.9], "price": [0.5, 0.6, 0.1], "payoff": [1.0, 2.0, 3.0]}
Verb = Callable[[ca.Policy], object]


def slope(policy: ca.Policy, n: int | None = None) -> Any:
    if not policy.uses_gradient:
        return None
    return [1.0] if n is None else [[1.0]] * n


def held(policy: ca.Policy) -> None:
    """Freeze a bin, or where none can be frozen pause; or renew the reference."""
    if policy.max_move is not None:
        policy.renew_reference()
    elif policy.life.model.stands_alone:
        policy.freeze(policy.bins()[0])
    else:
        policy.pause()


def segment(policy: ca.Policy) -> None:
    """Freeze a segment, or where none can be frozen pause."""
    if policy.life.model.stands_alone:
        policy.freeze({"x": (0.3, 0.8)})
    else:
        policy.pause()


def tell_in_a_segment(policy: ca.Policy) -> None:
    """Its decision is one of a segment that is frozen by now, if one can be."""
    segment(policy)
    policy.tell(3, 1.0, gradient=slope(policy))


VERBS: dict[str, Verb] = {
    "ask": lambda policy: policy.ask([0.7]),
    "ask_many": lambda policy: policy.ask_many([[0.7], [0.2]]),
    "tell": lambda policy: policy.tell(3, 1.0, gradient=slope(policy)),
    "tell_many": lambda policy: policy.tell_many([2, 4, 3], [1.0] * 3, gradients=slope(policy, 3)),
    "forget": lambda policy: policy.forget(2),
    "forget_all": lambda policy: policy.forget_all(),
    "learn_from": lambda policy: policy.learn_from(LOG),
    "hold back": held,
    "freeze": segment,
    "tell a frozen one": tell_in_a_segment,
    "explain": lambda policy: policy.explain([0.7]),
    "stats": lambda policy: policy.stats(),
}
WHOLE = {
    "tell",
    "tell_many",
    "forget",
    "forget_all",
    "learn_from",
    "hold back",
    "freeze",
    "explain",
    "stats",
}


def used(maker: str) -> ca.Policy:
    """One decision told, four open, the oldest of which the next `ask` gives up."""
    policy = MAKERS[maker]()
    policy.warm_up()
    policy.tell(policy.ask([0.1]), 1.0, gradient=slope(policy))
    for x in (0.9, 0.4, 0.6, 0.8):
        policy.ask([x])
    return policy


class Interrupting:
    """Raises where Python may run a signal handler: in a function's beginning, after a call."""

    def __init__(self, at: int) -> None:
        self.at, self.seen = at, 0

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event in ("call", "c_return") and argument is not sys.setprofile:
            self.seen += 1
            if self.seen == self.at:
                raise KeyboardInterrupt


def interrupted(verb: Verb, policy: ca.Policy, at: int) -> int:
    """Do it, interrupted at this place; how many places there were."""
    interrupting = Interrupting(at)
    gc.disable()  # what it calls has nowhere to raise
    sys.setprofile(interrupting)
    try:
        verb(policy)
    except KeyboardInterrupt:
        assert interrupting.seen == at
    finally:
        sys.setprofile(None)
        gc.enable()
    return interrupting.seen


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("verb", VERBS)
def test_an_interrupt_anywhere_leaves_nothing_half_done(maker: str, verb: str) -> None:
    """At every place, or at two hundred of them."""
    before = used(maker).snapshot()
    ended = ca.Policy.from_snapshot(before)
    ended.listen(lambda event: None)
    places = interrupted(VERBS[verb], ended, 0)
    assert places > 10
    changed = 0
    for at in range(1, places + 1, max(1, places // 200)):
        policy, happened = ca.Policy.from_snapshot(before), list[Any]()
        policy.listen(happened.append)
        interrupted(VERBS[verb], policy, at)
        after = policy.snapshot()
        changed += after != before
        assert verb not in WHOLE or after in (before, ended.snapshot()), at
        replica = ca.Policy.from_snapshot(before)
        for event in happened:
            replica.apply(event)
        assert replica.snapshot() == after, at
        check_works(policy)
    assert changed or verb in ("explain", "stats")


def test_an_interrupted_log_brings_its_rule_its_reach_and_its_payoffs_together() -> None:
    x = [k / 40 for k in range(40)]
    price = [0.3 + 0.4 * a + 0.1 * (-1) ** k for k, a in enumerate(x)]
    log = {"x": x, "price": price, "payoff": price}

    def learn(policy: ca.Policy) -> None:
        policy.learn_from(log)

    def known(policy: ca.Policy) -> tuple[Any, ...]:
        assert policy.reach is not None
        life = policy.life
        asked = life.start_for(np.array([0.9])).tolist()
        return (
            policy.start,
            policy.reach.tolist(),
            asked,
            life.constant is None,
            life.model.learned,
        )

    before = used("reach").snapshot()
    ended = ca.Policy.from_snapshot(before)
    places = interrupted(learn, ended, 0)
    both = [known(ca.Policy.from_snapshot(before)), known(ended)]
    assert all(old != new for old, new in zip(*both, strict=True))
    seen = set()
    last = range(places - 40, places + 1)  # before and after the stroke
    for at in (*range(1, places - 40, max(1, places // 200)), *last):
        policy = ca.Policy.from_snapshot(before)
        interrupted(learn, policy, at)
        seen.add(both.index(known(policy)))
    assert seen == {0, 1}


def check_works(policy: ca.Policy) -> None:
    """What is open can be told, each once; nothing is lost on the way."""
    for id_ in list(policy.life.open.open):
        if id_ not in policy.life.open.held:
            policy.tell(id_, 0.5, gradient=slope(policy))
        with pytest.raises(ContinuarmError):
            policy.tell(id_, 0.5, gradient=slope(policy))
    stats = policy.stats()
    assert stats.open == 0
    assert sum(policy.life.asked_per_bin) == stats.asked
    policy.forget_all()
    assert policy.stats().held == 0


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # of the standard library, interrupted
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("maker", MAKERS)
def test_an_interrupted_save_leaves_the_old_file_or_the_new_one(
    maker: str, tmp_path: Path
) -> None:
    path, policy = tmp_path / "policy", used(maker)
    policy.save(path)
    first = ca.load(path).snapshot()
    policy.ask([0.3])
    places = interrupted(lambda p: p.save(tmp_path / "other"), policy, 0)
    policy.save(tmp_path / "other")
    for at in range(1, places + 1, max(1, places // 50)):
        interrupted(lambda p: p.save(path), policy, at)
        assert ca.load(path).snapshot() in (first, policy.snapshot())
    assert ca.load(path).snapshot() == policy.snapshot()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["other", "policy"]


def test_what_a_listener_raises_comes_when_the_others_have_heard() -> None:
    policy, heard = used("surface"), list[Any]()

    def raising(event: Any) -> None:
        raise OSError("disk full")

    policy.listen(raising)
    policy.listen(heard.append)
    with pytest.raises(OSError, match="disk full"):
        policy.tell(3, 1.0)
    with pytest.raises(OSError, match="disk full"):
        policy.tell_many([1, 2], [1.0, 2.0])
    assert [event.id for event in heard] == [3, 1, 2]


def test_signals_that_raise_every_half_millisecond() -> None:
    """Thousands of decisions, cut off wherever the signal comes; other threads serve, too."""
    code = """
import signal, sys, threading
import continuarm as ca
class Alarm(Exception):
    pass
def ring(*_):
    raise Alarm
policy = ca.StaticKWSA(ca.Box.unit(1), ca.Box.unit(1), bins=2, step=1.0, ttl=50, rng=0)
policy.warm_up()
before, happened = policy.snapshot(), []
policy.listen(happened.append)
stop = threading.Event()
def serve():
    while not stop.is_set():
        decision = policy.ask([0.3])
        try:
            policy.tell(decision, 1.0)
        except ca.errors.ExpiredDecisionError:
            pass
        stop.wait(0.0005)
thread = threading.Thread(target=serve)
thread.start()
signal.signal(signal.SIGALRM, ring)
rung = 0
while rung < 2000:
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0003)
        for _ in range(1000):  # one that comes while garbage is collected has nowhere to raise
            policy.tell(policy.ask([0.5]), 1.0)
    except Alarm:
        rung += 1
stop.set()
thread.join(20)
assert not thread.is_alive()
stats = policy.stats()
assert stats.asked == stats.told + stats.expired + stats.open, stats
replica = ca.Policy.from_snapshot(before)
for event in happened:
    replica.apply(event)
print(replica.snapshot() == policy.snapshot())
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout == "True\n", done.stderr


def test_logs_among_signals_that_raise() -> None:
    """Two logs in turn: the start, the reach and the payoffs are always those of one moment."""
    code = """
import random, signal
import continuarm as ca
class Alarm(Exception):
    pass
def ring(*_):
    raise Alarm
def log(n, slope):
    x = [k / n for k in range(n)]
    price = [0.3 + slope * a + slope / 4 * (-1) ** k for k, a in enumerate(x)]
    return {"x": x, "price": price, "payoff": price}
boxes = ca.Box([0.0], [1.0], names=["x"]), ca.Box([0.0], [1.0], names=["price"])
policy, logs = ca.SurfaceSampling(*boxes, reach=0.1, rng=0), [log(20, 0.4), log(30, 0.2)]
said = {}
for given in logs:
    twin = policy.copy()
    twin.learn_from(given)
    said[len(given["x"])] = twin.start, twin.reach.tolist()
before, happened = policy.snapshot(), []
policy.listen(happened.append)
policy.learn_from(logs[0])
signal.signal(signal.SIGALRM, ring)
random.seed(0)
rung = 0
while rung < 1000:
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-4, 3e-3))
        for k in range(1000):
            policy.learn_from(logs[k % 2])
    except Alarm:
        rung += 1
        policy.stats()  # what a signal kept from a listener is heard at the next verb
        rows = [len(event.payoffs) for event in happened]
        assert (policy.start, policy.reach.tolist()) == said[rows[-1]]
        assert policy.life.model.learned[0] == sum(rows)
signal.setitimer(signal.ITIMER_REAL, 0)
replica = ca.Policy.from_snapshot(before)
for event in happened:
    replica.apply(event)
print({len(event.payoffs) for event in happened}, replica.snapshot() == policy.snapshot())
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout == "{20, 30} True\n", done.stderr


def test_forks_among_signals_that_raise() -> None:
    """Three hundred forks, each with a signal on its way; a thread serves all the while."""
    code = """
import os, random, signal, sys, threading
import continuarm as ca
sys.unraisablehook = lambda _: None  # a handler that raises while a process forks is not heard
class Alarm(Exception):
    pass
def ring(*_):
    raise Alarm
policies = [ca.SurfaceSampling(ca.Box.unit(1), ca.Box.unit(1), rng=k) for k in range(20)]
for policy in policies[:2]:
    policy.warm_up()
stop = threading.Event()
def serve():
    while not stop.is_set():
        for policy in policies:
            policy.tell(policy.ask([0.3]), 1.0)
thread = threading.Thread(target=serve, daemon=True)
thread.start()
signal.signal(signal.SIGALRM, ring)
random.seed(0)
ended = []
for _ in range(300):
    child = None
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 3e-3))
        child = os.fork()
        if child == 0:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(30)
            status = 1
            try:
                for policy in policies:
                    policy.tell(policy.ask([0.5]), 1.0)
                status = 0
            finally:
                os._exit(status)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Alarm:
        pass
    if child:
        ended.append(os.waitpid(child, 0)[1])
stop.set()
thread.join(30)
for policy in policies:
    policy.tell(policy.ask([0.5]), 1.0)
print(thread.is_alive(), len(ended) > 100, set(ended))
"""
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.stdout == "False True {0}\n", done.stdout + done.stderr
