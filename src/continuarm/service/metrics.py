"""Metrics, in the text that Prometheus reads."""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable

from continuarm.background import counted
from continuarm.service.clock import ClockWatch
from continuarm.service.experiments import Experiments
from continuarm.service.http import Answered

__all__ = ["Metrics"]

BUCKETS = (1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 1000.0)  # milliseconds
LIMITS = (*BUCKETS, float("inf"))
VERB = re.compile(r"/v1/experiments(?:/[^/]+(?:/bins/[^/]+)?(?:/(\w+))?)?")


class Metrics:
    """What this process has done, and how its experiments fare."""

    def __init__(self, experiments: Experiments, watch: ClockWatch) -> None:
        self._experiments, self.watch = experiments, watch
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._took: Counter[tuple[str, float]] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self.counts: dict[str, Callable[[], int]] = {}  # of this process, by their names

    def counting(self, method: str, path: str) -> Answered:
        """What counts the answers to one kind of request."""
        found = VERB.fullmatch(path)
        verb = (found and found[1]) or "experiment"

        def count(status: int, milliseconds: float) -> None:
            self._requests[method, verb, status] += 1
            self._seconds[verb] += milliseconds
            self._took[verb, LIMITS[bisect_left(BUCKETS, milliseconds)]] += 1

        return count

    def text(self) -> str:
        """All of it."""
        parts = (
            self._of_requests(),
            self._of_process(),
            self._of_tasks(),
            self._of_experiments(),
            self._of_troubles(),
        )
        return "\n".join(line for lines in parts for line in lines) + "\n"

    def _of_process(self) -> list[str]:
        names = [(f"continuarm_{name}_total", count) for name, count in self.counts.items()]
        return [
            line
            for name, count in names
            for line in (f"# TYPE {name} counter", f"{name} {count()}")
        ]

    def _of_requests(self) -> list[str]:
        lines = ["# TYPE continuarm_requests_total counter"]
        for (method, verb, status), count in sorted(self._requests.items()):
            labels = f'method="{method}",verb="{verb}",status="{status}"'
            lines.append(f"continuarm_requests_total{{{labels}}} {count}")
        lines.append("# TYPE continuarm_request_seconds histogram")
        for verb in sorted(self._seconds):
            total = 0
            for limit in LIMITS:
                total += self._took[verb, limit]
                edge = "+Inf" if limit == float("inf") else f"{limit / 1000.0:g}"
                labels = f'verb="{verb}",le="{edge}"'
                lines.append(f"continuarm_request_seconds_bucket{{{labels}}} {total}")
            seconds = self._seconds[verb] / 1000.0
            lines.append(f'continuarm_request_seconds_sum{{verb="{verb}"}} {seconds:.6f}')
            lines.append(f'continuarm_request_seconds_count{{verb="{verb}"}} {total}')
        return lines

    def _of_troubles(self) -> list[str]:
        """Experiments that cannot be served, and states that were rounded otherwise."""
        running, held = self._experiments.all_running(), self._experiments.quarantined
        lines = ["# TYPE continuarm_quarantined gauge"]
        lines += [_line("quarantined", name, 1) for name in held]
        lines.append("# TYPE continuarm_differs gauge")
        lines += [_line("differs", one.name, one.replica.differs is not None) for one in running]
        lines.append("# TYPE continuarm_states_rounded_total counter")
        lines += [_line("states_rounded_total", one.name, one.replica.rounded) for one in running]
        lines.append("# TYPE continuarm_clock_ahead_seconds gauge")
        far = ((one.name, self.watch.ahead(one)) for one in running)
        lines += [_line("clock_ahead_seconds", *one) for one in far]
        jump = f"continuarm_clock_jump_seconds {self.watch.jump:g}"
        return [*lines, "# TYPE continuarm_clock_jump_seconds gauge", jump]

    def _of_tasks(self) -> list[str]:
        name = "continuarm_background_errors_total"
        found = (f'{name}{{task="{task}"}} {count}' for task, count in sorted(counted().items()))
        return [f"# TYPE {name} counter", *found]

    def _of_experiments(self) -> list[str]:
        numbers: dict[str, list[str]] = {}
        for running in self._experiments.all_running():
            stats = running.gate.alone(running.stats)
            for what, value in stats.items():
                numbers.setdefault(what, []).append(_line(what, running.name, value))
        return [
            line
            for what, lines in numbers.items()
            for line in (f"# TYPE continuarm_{what} gauge", *lines)
        ]


def _line(what: str, experiment: str, value: float) -> str:
    name = experiment.replace("\\", "\\\\").replace('"', '\\"')
    return f'continuarm_{what}{{experiment="{name}"}} {value:g}'
