"""Crafted records: flipped bytes and edited fields in stores, snapshots and exports."""

import json
import select
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock, Thread

from benchmarks.attacks import crafting
from benchmarks.attacks.ledger import command
from benchmarks.attacks.place import Place
from benchmarks.attacks.result import Case, Defect, Tally
from benchmarks.attacks.servers import Server, request

__all__ = ["CASES"]

PROCESSES = 2
PATIENCE = 60.0  # seconds that one may take
FINE = ("works", "refused")
# that nobody can tell: when a snapshot was kept, which only decides when it may go, and that one
# is gone, as all but some are in time
UNTOLD = ("snapshots.time", "snapshots without")


def records(place: Place, tally: Tally) -> None:
    """Craft, open and use; in processes that may crash or hang."""
    wanted = place.often(100_000, 200)
    with _folder(place) as folder, place.progress("records", wanted) as move:
        crafting.base(folder / "base.db")
        share = wanted // PROCESSES
        crafters = [_Crafter(folder, k * share, share, move) for k in range(PROCESSES)]
        for crafter in crafters:
            crafter.start()
        for crafter in crafters:
            crafter.join()
    outcomes = Counter[str]()
    examples: dict[str, str] = {}
    for crafter in crafters:
        outcomes += crafter.outcomes
        examples |= crafter.examples
    tally.times = sum(outcomes.values())
    tally.wrong = tally.times - sum(outcomes[kind] for kind in FINE)
    if examples:
        named = " | ".join(f"{outcomes[kind]:,} × {examples[kind]}" for kind in examples)
        raise Defect(f"{len(examples)} kinds, {tally.wrong:,} of {tally.times:,}: {named}"[:6000])
    tally.came = f"{outcomes['refused']:,} refused in one line, {outcomes['works']:,} work"


@contextmanager
def _folder(place: Place) -> Iterator[Path]:
    """In memory, where there is such a folder: nothing here is about disks."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else place.stores) as found:
        yield Path(found)


class _Crafter(Thread):
    """One who has a process craft, and goes on with the next seed where it crashes or hangs."""

    def __init__(self, folder: Path, first: int, count: int, move: Callable[[int], None]) -> None:
        super().__init__(daemon=True)
        self.outcomes, self.examples = Counter[str](), dict[str, str]()
        self._folder, self._next, self._end, self._move = folder, first, first + count, move

    def run(self) -> None:
        while self._next < self._end:
            command = [sys.executable, "-m", "benchmarks.attacks.crafting", str(self._folder)]
            command += [str(self._next), str(self._end - self._next)]
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            ) as process:
                fate = self._heard(process)
                process.kill()
            if fate is not None:
                self._note(self._next, "", fate)

    def _heard(self, process: "subprocess.Popen[bytes]") -> str | None:
        """Note what it says; how it ended if that was too early."""
        assert process.stdout is not None
        while self._next < self._end:
            if not select.select([process.stdout], [], [], PATIENCE)[0]:
                return "hang"
            line = process.stdout.readline()
            if not line:
                return f"crash: exit code {process.wait()}"
            seed, what, outcome = json.loads(line)
            if outcome != "begun":
                self._note(seed, what, outcome)
        return None

    def _note(self, seed: int, what: str, outcome: str) -> None:
        kind = outcome[:60]
        self.outcomes[kind] += 1
        if outcome not in FINE:
            self.examples.setdefault(kind, f"[{outcome}; seed {seed}: {what}]")
        self._next = seed + 1
        with _moving:
            self._move(1)


_moving = Lock()


def served(place: Place, tally: Tally) -> None:
    """Real servers on crafted stores: they start, the other experiment decides, and it is said."""
    with _folder(place) as folder:
        crafting.base(folder / "base.db")
        for seed in range(place.often(30, 1)):
            path = folder / f"served-{seed}.db"
            shutil.copyfile(folder / "base.db", path)
            rng = crafting.Random(f"served-{seed}")
            what = rng.choice((crafting.events, crafting.snapshots, crafting.experiments))(
                path, rng
            )
            try:
                _start(place, str(path))
            except Defect as defect:
                tally.wrong += 1
                raise Defect(f"{what}: {defect}") from None
            tally.times += 1
    tally.came = "all start, and the other experiment decides"


def _start(place: Place, store: str) -> None:
    errors = place.folder / "records.stderr"
    errors.unlink(missing_ok=True)
    server = Server(store, errors)
    try:
        server.ready()
        ask = {"context": {"age": 40, "income": 100}}
        status, answer = request(server.port, "POST", "/v1/experiments/other/decisions", ask)
        if status != 200:
            raise Defect(f"the other experiment answers {status}: {answer}")
        for path in ("/v1/experiments", "/v1/experiments/prices", "/metrics"):
            status, answer = request(server.port, "GET", path)
            if status == 500 or (path != "/v1/experiments/prices" and status != 200):
                raise Defect(f"{path} is {status}: {answer}")
        if server.tracebacks(but=b"is quarantined"):  # of which the log says why
            raise Defect(f"a traceback was written: {server.words()}")
    finally:
        server.end()


def checked(place: Place, tally: Tally) -> None:
    """`continuarm check` finds what was changed in records and snapshots, in one line each."""
    with _folder(place) as folder:
        crafting.base(folder / "base.db")
        command("check", "--store", str(folder / "base.db"))
        for seed in range(place.often(60, 2)):
            path = folder / f"checked-{seed}.db"
            shutil.copyfile(folder / "base.db", path)
            rng = crafting.Random(f"checked-{seed}")
            what = rng.choice((crafting.events, crafting.snapshots))(path, rng)
            if "as it was" in what or what.startswith(UNTOLD):
                continue
            tally.times += 1
            said = ""
            try:
                command("check", "--store", str(path))
            except Defect as defect:
                said = str(defect)
            if not said or "Traceback" in said or "No such command" in said:
                tally.wrong += 1
                raise Defect(
                    f"{what}: `check` must say so in a line, but said {said or 'nothing'}"
                )
    tally.came = "all found"


CASES = [
    Case("records", "crafted stores, snapshots and exports, opened and used", records),
    Case("records", "servers on crafted stores", served),
    Case("records", "`continuarm check` on crafted stores", checked),
]
