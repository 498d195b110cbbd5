"""Files with a right checksum that no `save` has written: refused, or a policy that works."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import continuarm as ca
from benchmarks.damage import POLICIES, put_together, taken_apart
from continuarm.core.learners.stencil import SLOT_BITS
from continuarm.core.learners.surface import layout
from continuarm.core.state import FREE_ROW, HEAD, LEVEL, SERIAL, SERIALS
from continuarm.errors import SavedFileError
from continuarm.live import saved_file

UNIT = ca.Box([0.0], [1.0])
Edit = Callable[[dict[str, Any], dict[str, Any]], None]


@pytest.mark.parametrize("name", POLICIES)
def test_300_crafted_files(name: str) -> None:
    """No crash, no hang, no raw exception, no NaN; benchmarks/fuzz.py has ten thousand."""
    command = [sys.executable, "-m", "benchmarks.fuzz", "--files", "300", "--only", name]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    files, refused, works, *defects = done.stdout.splitlines()[-1].split()[-8:]
    assert int(files) == int(refused) + int(works) == 300
    assert min(int(refused), int(works)) > 10
    assert [int(count) for count in defects] == [0] * 5


def learned(policy: ca.Policy, n: int) -> ca.Policy:
    rng = np.random.default_rng(0)
    for _ in range(n):
        decision = policy.ask([rng.random()])
        policy.tell(decision, -float((decision.value[0] - 0.3) ** 2 + 0.1 * rng.standard_normal()))
    return policy


def refused(policy: ca.Policy, edit: Edit, path: Path) -> None:
    """Save a policy, edit its file, and open that; unedited it opens."""
    policy.save(path)
    shell, state = saved_file.read(path)
    header, arrays = taken_apart(state)
    saved_file.write(path, shell, put_together(header, arrays))
    ca.load(path)
    edit(header, arrays)
    saved_file.write(path, shell, put_together(header, arrays))
    with pytest.raises(SavedFileError):
        ca.load(path)


def far_row(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["nodes"][1, 3] = 1e9


def endless(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["nodes"][1, 0] = 0
    arrays["nodes"][1, 1] = arrays["nodes"][1, 2] = 1


def one_node(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["nodes"] = arrays["nodes"][:1]


def many_dimensions(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    header["context"] = [[0.0] * 100_000, [1.0] * 100_000, None]


def dirty_room(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["nodes"][-1, 5] = 1.0


def cut_at_the_edge(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["nodes"][1:, 11] = 1.0


def silent_text(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    header["waiting"] = [5, None, "a"]


def absurd_silence(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    header["waiting"] = [5, None, 1e283]


def weightless(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["rows"][1:, HEAD + layout.WEIGHT] = 5e-324


def held_for_nothing(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    header["held"], arrays["held"] = header["ids"][:1], np.ones(1)


def last_count(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    header["asked"] = 2**53


def far_payoffs(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["rows"][1, -1] = 1e300


def endless_told(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["rows"][1, 2] = np.inf


def frozen_stranger(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["counts"] = np.append(arrays["counts"], arrays["counts"][SERIALS] + 1.0)


def frozen_twice(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["counts"] = np.append(arrays["counts"], [arrays["counts"][SERIALS]] * 2)


def bins_of_one_number(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["rows"][:, SERIAL] = arrays["counts"][SERIALS]


@pytest.mark.parametrize(
    "edit",
    [
        far_row,
        endless,
        one_node,
        many_dimensions,
        dirty_room,
        cut_at_the_edge,
        silent_text,
        absurd_silence,
        weightless,
        held_for_nothing,
        last_count,
        far_payoffs,
        endless_told,
        frozen_stranger,
        frozen_twice,
        bins_of_one_number,
    ],
)
def test_edited_surfaces_are_refused(edit: Edit, tmp_path: Path) -> None:
    policy = learned(ca.SurfaceSampling(UNIT, UNIT, rng=0), 200)
    policy.ask([0.5])
    refused(policy, edit, tmp_path / "policy")


def test_the_head_of_a_free_row_is_checked(tmp_path: Path) -> None:
    """It is that of the next challenger."""
    policy, rng = ca.SurfaceSampling(UNIT, UNIT, rng=0), np.random.default_rng(0)
    while len(policy.bins()) < 2:  # a split gives rows back
        x = rng.random()
        decision = policy.ask([x])
        policy.tell(decision, -float((decision.value[0] - 0.2 - 0.6 * (x > 0.5)) ** 2))

    def below_the_root(header: dict[str, Any], arrays: dict[str, Any]) -> None:
        free = int(arrays["counts"][FREE_ROW])
        assert free > 0
        arrays["rows"][free, LEVEL] = -1.0

    refused(policy, below_the_root, tmp_path / "policy")


def far_reference(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["reference_nodes"][1, 3] = 1e9


def wide_reference(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["reference_rows"] = np.zeros((2, 3))


def no_reference(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    del arrays["reference_counts"]


def nan_reference(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["reference_start"][0] = np.nan


def endless_reach(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["reference_reach"][0] = 1e9


def no_move(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    header["max_move"] = None


def moved_back(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    header["max_move"] = [-1.0]


@pytest.mark.parametrize(
    "edit",
    [
        *(far_reference, wide_reference, no_reference, nan_reference),
        *(endless_reach, no_move, moved_back),
    ],
)
def test_edited_references_are_refused(edit: Edit, tmp_path: Path) -> None:
    policy = learned(ca.SurfaceSampling(UNIT, UNIT, max_move=0.2, rng=0), 200)
    policy.renew_reference()
    refused(policy, edit, tmp_path / "policy")


def far_then(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["then0_nodes"][1, 3] = 1e9


def wide_then(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["then0_rows"] = np.zeros((2, 3))


def nan_then(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["then0_start"][0] = np.nan


def endless_then(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["then0_reach"][0] = 1e9


def nothing_then(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    for name in [name for name in arrays if name.startswith("then1_")]:
        del arrays[name]


def near_itself(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    header["near"][0] = 0


def near_nobody(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    header["near"][0] = 99


def known_to_nobody(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    header["segments"][0]["known"] = 99


def without_near(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    del header["near"]


def without_segments(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    del header["segments"]


def in_another_order(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    header["segments"].reverse()


def upside_down(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    header["segments"][0]["where"] = {"0": [0.5, 0.1]}


def of_no_name(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    header["segments"][0]["where"] = {"hour": [0.1, 0.5]}


def everywhere(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    header["segments"][0]["where"] = {}


def frozen_again(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    header["segments"][1]["where"] = header["segments"][0]["where"]


def too_many(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    one = header["segments"].pop()
    header["segments"] += [one | {"where": {"0": [k / 1000, 0.9]}} for k in range(100)]


def before_it_began(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    header["segments"][0]["asked"] = -1


def at_no_time(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    header["segments"][0]["at"] = "noon"


@pytest.mark.parametrize("move", [None, 0.2])
@pytest.mark.parametrize(
    "edit",
    [
        *(far_then, wide_then, nan_then, endless_then, nothing_then),
        *(near_itself, near_nobody, known_to_nobody, without_near, without_segments),
        *(in_another_order, upside_down, of_no_name, everywhere, frozen_again, too_many),
        *(before_it_began, at_no_time),
    ],
)
def test_edited_segments_are_refused(edit: Edit, move: float | None, tmp_path: Path) -> None:
    policy = learned(ca.SurfaceSampling(UNIT, UNIT, max_move=move, rng=0), 200)
    if move is not None:
        policy.renew_reference()
    policy.freeze({"0": (0.0, 0.4)})
    learned(policy, 20)
    policy.freeze({"0": (0.3, 0.6)})
    refused(policy, edit, tmp_path / "policy")


def alone(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Compiled code would take this ticket for row -1 of the pool."""
    arrays["seats"][1, 0] = -1


def twice(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["seats"][:, 1] = arrays["seats"][:, 0]


def told_already(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["pool"][arrays["seats"][1, 0] >> SLOT_BITS, 1] += 1.0


def of_another_bin(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["seats"][0, 0] = 3 - arrays["seats"][0, 0]


def shared_stencil(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["rows"][2, 5:] = arrays["rows"][1, 5:]


def no_distance(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["pool"][arrays["seats"][1, 0] >> SLOT_BITS, 5] = 0.0


@pytest.mark.parametrize(
    "edit", [alone, twice, told_already, of_another_bin, shared_stencil, no_distance]
)
def test_edited_stencils_are_refused(edit: Edit, tmp_path: Path) -> None:
    policy = ca.StaticKWSA(UNIT, UNIT, bins=2, step=1.0, rng=0)
    for x in (0.2, 0.7):
        policy.ask([x])
    refused(policy, edit, tmp_path / "policy")
