"""Heavy reads, and clients that leave without their answers."""

import http.client
import json
import random
import socket
import time
from contextlib import suppress
from threading import Event, Thread
from typing import Any

from benchmarks.attacks.place import Place
from benchmarks.attacks.result import Case, Defect, Tally
from benchmarks.attacks.servers import Server, request, several

__all__ = ["CASES", "Asking", "left_reads", "wide"]

DX, DY = 30, 100
LARGE, LEARNED = 900_000, 3  # bytes of a log, and how many are learned before
WIDE = "/v1/experiments/wide"
LONGEST = 1.0  # seconds that an ask may wait meanwhile
JSON = {"content-type": "application/json"}


def wide(server: Server) -> None:
    """An experiment whose reads are heavy: many contexts, many decisions, a few payoffs."""
    context = {"low": [0.0] * DX, "high": [1.0] * DX, "names": [f"x{k}" for k in range(DX)]}
    decision = {"low": [0.0] * DY, "high": [1.0] * DY, "names": [f"y{k}" for k in range(DY)]}
    made = {"policy": "recommended", "context": context, "decision": decision}
    _post(server, WIDE, made, "PUT")
    for seed in range(LEARNED):
        _post(server, f"{WIDE}/log", old_log(seed))


def old_log(seed: int) -> dict[str, Any]:
    """A log of an older rule, as large as a request may be."""
    rng, names = random.Random(seed), [f"x{k}" for k in range(DX)] + [f"y{k}" for k in range(DY)]
    rows = LARGE // (8 * len(names))
    columns = {name: [round(rng.random(), 4) for _ in range(rows)] for name in [*names, "payoff"]}
    return {"columns": columns}


def _post(server: Server, path: str, body: Any, method: str = "POST") -> Any:
    status, answer = request(server.port, method, path, body, timeout=300.0)
    if status not in (200, 201):
        raise Defect(f"{method} {path} must be done, but is {status}: {answer}")
    return answer


def left_reads(server: Server, token: str | None = None, count: int = 8) -> None:
    """Ask for heavy curves, and leave without the answers."""
    head = f"authorization: Bearer {token}\r\n" if token else ""
    for k in range(count):
        with socket.create_connection(("127.0.0.1", server.port), 10.0) as left:
            line = f"GET {WIDE}/curve?along=x{k} HTTP/1.1\r\nhost: 127.0.0.1\r\n{head}\r\n"
            left.sendall(line.encode())
            time.sleep(0.05)


class Asking:
    """One customer who asks, one request after the other: how long each took, and its status."""

    def __init__(self, server: Server, rest: float = 0.01) -> None:
        self.took: list[float] = []
        self.wrong: list[str] = []
        self._server, self._rest, self._stop = server, rest, Event()
        self._thread = Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._server.port, timeout=60.0)
        body = json.dumps({"context": {"age": 40, "income": 100}})
        while not self._stop.is_set():
            began, status = time.monotonic(), 0
            with suppress(OSError, http.client.HTTPException):
                connection.request("POST", "/v1/experiments/prices/decisions", body, JSON)
                answer = connection.getresponse()
                answer.read()
                status = answer.status
            if status != 200:
                connection.close()
                self.wrong.append(f"an ask was answered by {status or 'nothing'}")
            self.took.append(time.monotonic() - began)
            self._stop.wait(self._rest)
        connection.close()

    def __enter__(self) -> "Asking":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(70.0)

    def settle(self, tally: Tally, longest: float = LONGEST) -> None:
        """What must hold of them all."""
        tally.decisions += len(self.took) - len(self.wrong)
        tally.pause = max(tally.pause or 0.0, *self.took)
        tally.wrong += len(self.wrong)
        if self.wrong:
            raise Defect(f"{len(self.wrong)} of {len(self.took)} asks: {self.wrong[0]}")
        if max(self.took) > longest:
            raise Defect(
                f"an ask waited for {max(self.took):.1f} s, at most {longest:g} are stated"
            )


def curves(place: Place, tally: Tally) -> None:
    """Eight heavy curves at once, again and again, whose clients leave."""
    with several(1, place.fresh("SQLite"), place.folder / "reads.stderr") as [server]:
        wide(server)
        with Asking(server) as asking:
            for _ in range(place.often(10, 1)):
                left_reads(server)
                tally.times += 8
                time.sleep(2.0)
        asking.settle(tally)
    tally.came = "asks go on"


def logs(place: Place, tally: Tally) -> None:
    """Large logs, payoff surfaces and exports, while others ask."""
    with several(1, place.fresh("SQLite"), place.folder / "reads.stderr") as [server]:
        wide(server)
        with Asking(server) as asking:
            for seed in range(place.often(5, 1)):
                _post(server, f"{WIDE}/log", old_log(seed))
                for path in ("payoff?over=y0", "export", "bins?most=2000", "diagnosis"):
                    with suppress(OSError):
                        request(server.port, "GET", f"{WIDE}/{path}", timeout=20.0)
                    tally.times += 1
        asking.settle(tally)
    tally.came = "asks go on"


CASES = [
    Case("reads", "eight curves at dx = 30, dy = 100, clients leave", curves),
    Case("reads", "logs of 0.8 MB, surfaces and exports at dx = 30, dy = 100", logs),
]
