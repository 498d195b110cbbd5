"""Saving, loading and exporting."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import continuarm as ca
from continuarm.errors import InputError, SavedFileError, SettingsError
from continuarm.live import saved_file
from continuarm.live.reader import Reader
from tests.test_policies import CONTEXT, DECISION, POLICIES, contexts, learn, make, slope, state


@pytest.mark.parametrize("name", POLICIES)
def test_a_loaded_policy_continues_identically(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("continuarm.live.shell.time.time", lambda: 1000.0)  # one clock for both
    policy = make(name, ttl=30, ttl_seconds=1e9)
    learn(policy, 400)
    opened = [policy.ask(x) for x in contexts(20, seed=1)]
    policy.save(tmp_path / "policy")
    loaded = ca.load(tmp_path / "policy")
    assert type(loaded) is type(policy) is ca.Policy
    assert loaded.name == policy.name == name
    assert repr(loaded) == repr(policy)
    assert loaded.describe() == policy.describe()
    assert state(loaded) == state(policy)
    for decision in opened[::2]:
        gap = policy.decision.to_unit(decision.value) - 0.3
        for one in (policy, loaded):
            one.tell(decision, float(gap @ gap), **slope(policy, gap))
    assert [v.tolist() for v in learn(loaded, 300, seed=2)] == [
        v.tolist() for v in learn(policy, 300, seed=2)
    ]
    assert state(loaded) == state(policy)


@pytest.mark.parametrize("kind", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_every_generator_of_numpy_yields_a_seed_that_is_saved(kind: str, tmp_path: Path) -> None:
    """Nothing else is taken from the generator, now or later."""
    rng, twin = (np.random.Generator(getattr(np.random, kind)(5)) for _ in range(2))
    for one in (rng, twin):
        one.integers(0, 9, dtype=np.uint32)  # leaves half of a draw behind
    policy, same = make("SurfaceSampling", rng=rng), make("SurfaceSampling", rng=twin)
    other = make("SurfaceSampling", rng=rng)  # the next numbers: another seed
    rng.random(9)
    policy.save(tmp_path / "policy")
    loaded = ca.load(tmp_path / "policy")
    assert state(loaded) == state(policy) == state(same) != state(other)
    draws = [
        [p.ask([37, 1000]).value.tolist() for _ in range(9)] for p in (policy, loaded, same, other)
    ]
    assert draws[0] == draws[1] == draws[2] != draws[3]


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_that_nobody_has_asked_is_saved(name: str, tmp_path: Path) -> None:
    policy = make(name)
    policy.save(tmp_path / "policy")
    loaded = ca.load(tmp_path / "policy")
    assert state(loaded) == state(policy)
    assert loaded.ask([37, 1000]).value.tolist() == policy.ask([37, 1000]).value.tolist()
    assert state(loaded) == state(policy)


def saved(tmp_path_factory: Any) -> bytes:
    policy = make("AdaptiveKWSA")
    learn(policy, 50)
    path = tmp_path_factory.mktemp("saved") / "policy"
    policy.save(path)
    content: bytes = path.read_bytes()
    return content


@pytest.fixture(scope="module")
def content(tmp_path_factory: Any) -> bytes:
    return saved(tmp_path_factory)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_is_refused(data: Any, content: bytes, tmp_path: Path) -> None:
    """Bytes changed, cut off, added or taken out: one clear error, whatever it is."""
    at = data.draw(st.integers(0, len(content) - 1))
    kind = data.draw(st.sampled_from(["flip", "cut", "insert", "delete", "head"]))
    if kind == "flip":
        change = bytes([content[at] ^ data.draw(st.integers(1, 255))])
        damaged = content[:at] + change + content[at + 1 :]
    elif kind == "cut":
        damaged = content[:at]
    elif kind == "insert":
        damaged = content[:at] + data.draw(st.binary(min_size=1, max_size=9)) + content[at:]
    elif kind == "delete":
        damaged = content[:at] + content[at + data.draw(st.integers(1, 99)) :]
    else:
        damaged = data.draw(st.binary(max_size=200))
    (tmp_path / "damaged").write_bytes(damaged)
    if damaged != content:
        with pytest.raises(SavedFileError):
            ca.load(tmp_path / "damaged")


def taken_apart(state: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a saved state says of itself, and its arrays."""
    text, _, data = state.partition(b"\n")
    header: dict[str, Any] = json.loads(text)
    arrays, start = {}, 0
    for name, dtype, shape in header["arrays"]:
        flat = np.frombuffer(data, dtype, math.prod(shape), start)
        arrays[name] = flat.reshape(shape)
        start += flat.nbytes
    return header, arrays


def put_together(header: dict[str, Any], arrays: dict[str, Any]) -> bytes:
    """The inverse."""
    listed = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
    text = json.dumps(header | {"arrays": listed})
    return text.encode() + b"\n" + b"".join(array.tobytes() for array in arrays.values())


@pytest.fixture
def one_open(tmp_path: Path) -> Path:
    """A saved policy with one open decision: row 1, ticket 1 << 20."""
    policy = make("StaticKWSA")
    policy.ask([37, 1000])
    policy.save(tmp_path / "policy")
    return tmp_path / "policy"


@pytest.mark.parametrize(
    ("part", "broken"),
    [
        ("seats", np.array([[1], [2**40]])),
        ("seats", np.array([[999], [1 << 20]])),
        ("seats", np.array([[1], [(1 << 20) | 77]])),
        ("seats", np.array([[1], [0]])),
        ("seats", np.array([[-1], [1 << 20]])),
        ("seats", np.array([[-1], [-1]])),
        ("contexts", np.zeros((1, 5))),
        ("values", np.zeros((1, 5))),
        ("starts", np.zeros((1, 5))),
        ("start", np.zeros(2)),
        ("key", np.zeros(1, np.uint64)),
        ("numbers", np.array([9])),
        ("numbers", np.array([-1])),
        ("at", np.zeros(0)),
        ("held", np.zeros(1)),
        ("counts", np.zeros(1)),
        ("counts", np.array([0.0, 999.0, 0.0, 0.0, 1.0, 0.0])),
        ("counts", np.array([0.0, 2.0, 999.0, 1.0, 1.0, 0.0])),
        ("nodes", np.zeros((1, 3))),
        ("nodes", np.full((17, 3), 999.0)),
        ("rows", np.zeros((2, 3))),
        ("rows", np.zeros((2, 14), np.int64)),
        ("pool", np.zeros((0, 14))),
        ("pool", np.full((2, 14), 999.0)),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value.shape}",
)
def test_parts_that_do_not_fit_are_refused(part: str, broken: Any, one_open: Path) -> None:
    """A file with a right checksum must not make compiled code write where it should not."""
    shell, content = saved_file.read(one_open)
    header, arrays = taken_apart(content)
    saved_file.write(one_open, shell, put_together(header, arrays))
    ca.load(one_open)
    assert arrays[part].shape != broken.shape or (arrays[part] != broken).any()
    saved_file.write(one_open, shell, put_together(header, arrays | {part: broken}))
    with pytest.raises(SavedFileError):
        ca.load(one_open)


@pytest.mark.parametrize("part", ["key", "rows", "seats", "held"])
def test_a_part_that_is_missing_is_refused(part: str, one_open: Path) -> None:
    shell, content = saved_file.read(one_open)
    header, arrays = taken_apart(content)
    del arrays[part]
    saved_file.write(one_open, shell, put_together(header, arrays))
    with pytest.raises(SavedFileError, match="must fit together"):
        ca.load(one_open)


@pytest.mark.parametrize(
    "part",
    ["context", "decision", "partition", "learner", "waiting", "asked", "ids", "held", "now"],
)
def test_a_state_that_does_not_say_all_of_itself_is_refused(part: str, one_open: Path) -> None:
    shell, content = saved_file.read(one_open)
    header, arrays = taken_apart(content)
    del header[part]
    saved_file.write(one_open, shell, put_together(header, arrays))
    with pytest.raises(SavedFileError, match="must fit together"):
        ca.load(one_open)


def test_a_shell_that_does_not_say_all_of_itself_is_refused(one_open: Path) -> None:
    shell, content = saved_file.read(one_open)
    for part in shell:
        saved_file.write(one_open, {k: v for k, v in shell.items() if k != part}, content)
        with pytest.raises(SavedFileError):
            ca.load(one_open)


def test_a_link_and_its_rights_are_kept(tmp_path: Path) -> None:
    policy, target, link = make("StaticKWSA"), tmp_path / "target", tmp_path / "link"
    policy.save(target)
    target.chmod(0o600)
    link.symlink_to(target)
    policy.save(link)
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o600


def test_an_older_newer_or_foreign_file_is_refused(content: bytes, tmp_path: Path) -> None:
    other, foreign = tmp_path / "other", tmp_path / "foreign"
    for number in (1, 3):
        other.write_bytes(content.replace(b"format 2", f"format {number}".encode(), 1))
        with pytest.raises(SavedFileError, match=f"format must be 2, .* but got {number}"):
            ca.load(other)
    foreign.write_text("{}")
    with pytest.raises(SavedFileError, match="a file written by `save` is needed"):
        ca.load(foreign)
    with pytest.raises(FileNotFoundError):
        ca.load(tmp_path / "nothing")


@dataclass(frozen=True)
class Passing(ca.Grid):
    """A partition that only this test has."""


def test_a_kind_that_nobody_registered_is_refused(tmp_path: Path) -> None:
    policy = ca.Policy(
        CONTEXT, DECISION, partition=Passing(4), learner=ca.KieferWolfowitz(step=1.0, width=0.3)
    )
    with pytest.raises(SettingsError, match="must be registered to be saved, but Passing is not"):
        policy.save(tmp_path / "policy")
    assert not os.listdir(tmp_path)
    ca.register(Passing)
    policy.save(tmp_path / "policy")
    loaded = ca.load(tmp_path / "policy")
    assert loaded.life.beginning.partition == Passing(4)
    assert state(loaded) == state(policy)
    code = f"import continuarm as ca; ca.load({str(tmp_path / 'policy')!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "SavedFileError: the kinds of a saved policy must be registered" in done.stderr
    assert "but got 'Passing'" in done.stderr


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: Any) -> None:
    policy, path = make("StaticKWSA"), tmp_path / "policy"
    learn(policy, 20)
    policy.save(path)
    old = path.read_bytes()
    learn(policy, 20)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        policy.save(path)
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["policy"]


def test_a_process_killed_while_saving_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "policy"
    code = f"""
import continuarm as ca
policy = ca.StaticKWSA(ca.Box.unit(1), ca.Box.unit(2), bins=2000, step=1.0)
for k in range(2000):
    policy.tell(policy.ask([k / 2000]), 1.0)
while True:
    policy.tell(policy.ask([0.5]), 1.0)
    policy.save({str(path)!r})
    print(policy.open_decisions, flush=True)
"""
    for pause in (0.0, 0.004, 0.013):
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(pause)
            process.send_signal(signal.SIGKILL)
        loaded = ca.load(path)
        assert len(loaded.bins()) == 2000


def test_a_decision_goes_to_text_and_back() -> None:
    policy = make("SurfaceSampling")
    decision = policy.ask([37, 1 / 3])
    text = decision.to_json()
    again = ca.Decision.from_json(text)
    assert (again.id, again.policy, again.names) == (0, decision.policy, decision.names)
    assert again.role == decision.role == "explored"
    within = ca.Box(DECISION.low, DECISION.centre)
    best = make("StaticKWSA").ask([37, 1000], within=within)
    assert ca.Decision.from_json(best.to_json()).role == best.role == "best"
    np.testing.assert_array_equal(again.value, decision.value)
    np.testing.assert_array_equal(again.context, decision.context)
    policy.tell(ca.Decision.from_json(text.encode()), 1.0)
    for wrong in (
        "",
        "7",
        "[]",
        '{"id": 1}',
        text.replace("0", '"0"', 1),
        "[" * 99_999,
        text.replace("37.0", "9" * 400),
    ):
        with pytest.raises(InputError, match="a decision in JSON is needed"):
            ca.Decision.from_json(wrong)


@pytest.mark.parametrize("name", ["SurfaceSampling", "StaticKWSA", "AdaptiveKWSA", "UniformUCB"])
def test_a_reader_in_plain_python_decides_as_the_policy_recommends(name: str) -> None:
    policy = make(name)
    for n in (0, 3, 60, 3000):
        learn(policy, n, seed=n)
        reader = Reader(policy.export())
        points = [*contexts(100, seed=9), CONTEXT.low, CONTEXT.high, CONTEXT.centre]
        for x in points:
            np.testing.assert_allclose(
                reader.decide(x.tolist()), policy.recommend(x), rtol=1e-9, atol=1e-9
            )
    x = {"age": 37.0, "income": 1000.0}
    best = policy.recommend([37, 1000]).tolist()
    assert list(reader.decide_by_name(x).values()) == pytest.approx(best)


def test_the_reader_climbs_like_the_policy_where_the_surface_is_not_concave() -> None:
    """Payoffs of pure noise: Hessians of every sign, with a full Hessian and a diagonal one."""
    for dy in (2, 4, 14):
        policy = ca.SurfaceSampling(ca.Box.unit(1), ca.Box.unit(dy), rng=0)
        rng = np.random.default_rng(0)
        for k in range(40 * dy):
            policy.tell(policy.ask([rng.random()]), float(rng.standard_normal()))
            if k % 20 == 19:
                reader, x = Reader(policy.export()), [rng.random()]
                np.testing.assert_allclose(reader.decide(x), policy.recommend(x), atol=1e-7)


def test_the_reader_needs_nothing_but_python() -> None:
    policy = make("SurfaceSampling")
    learn(policy, 200)
    code = (
        "import sys\nsys.modules['numpy'] = sys.modules['numba'] = None\n"
        "from continuarm.live.reader import Reader\n"
        "print(Reader(sys.stdin.read()).decide([37, 1000]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, input=policy.export()
    )
    assert json.loads(done.stdout) == pytest.approx(policy.recommend([37, 1000]).tolist())


def test_the_reader_refuses_what_it_cannot_know() -> None:
    text = make("SurfaceSampling").export()
    for wrong in ("", "[]", "{}", text.replace("continuarm table", "menu")):
        with pytest.raises(ValueError, match="a table written by `export` is needed"):
            Reader(wrong)
    for version in (1, 5):
        with pytest.raises(ValueError, match=f"version must be 2, 3 or 4, .* but got {version}"):
            Reader(text.replace('"version": 2', f'"version": {version}'))
    reader = Reader(text)
    for context, message in (
        ([37, 1e9], "`0.0 <= income <= 250000.0` must hold"),
        ([37], "2 numbers are needed, but got 1"),
        ({"age": 37, "pay": 1}, "the names must be"),
    ):
        with pytest.raises(ValueError, match=message):
            reader.decide(context)
