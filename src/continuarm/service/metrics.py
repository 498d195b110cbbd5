"""Metrics, in the text that Prometheus reads."""

import re
from collections import Counter
from typing import Any

from continuarm.service.experiments import Experiments

__all__ = ["Metrics"]

BUCKETS = (1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 1000.0)  # milliseconds
VERB = re.compile(r"/v1/experiments(?:/[^/]+(?:/bins/[^/]+)?(?:/(\w+))?)?")


class Metrics:
    """What this process has done, and how its experiments fare."""

    def __init__(self, experiments: Experiments) -> None:
        self._experiments = experiments
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._took: Counter[tuple[str, float]] = Counter()
        self._seconds: Counter[str] = Counter()

    def count(self, line: dict[str, Any]) -> None:
        """One more request."""
        found = VERB.fullmatch(line["path"])
        verb = (found and found[1]) or "experiment"
        self._requests[line["method"], verb, line["status"]] += 1
        self._seconds[verb] += line["ms"]
        bucket = next((limit for limit in BUCKETS if line["ms"] <= limit), float("inf"))
        self._took[verb, bucket] += 1

    def text(self) -> str:
        """All of it."""
        return "\n".join([*self._of_requests(), *self._of_experiments()]) + "\n"

    def _of_requests(self) -> list[str]:
        lines = ["# TYPE continuarm_requests_total counter"]
        for (method, verb, status), count in sorted(self._requests.items()):
            labels = f'method="{method}",verb="{verb}",status="{status}"'
            lines.append(f"continuarm_requests_total{{{labels}}} {count}")
        lines.append("# TYPE continuarm_request_seconds histogram")
        for verb in sorted(self._seconds):
            total = 0
            for limit in (*BUCKETS, float("inf")):
                total += self._took[verb, limit]
                edge = "+Inf" if limit == float("inf") else f"{limit / 1000.0:g}"
                labels = f'verb="{verb}",le="{edge}"'
                lines.append(f"continuarm_request_seconds_bucket{{{labels}}} {total}")
            seconds = self._seconds[verb] / 1000.0
            lines.append(f'continuarm_request_seconds_sum{{verb="{verb}"}} {seconds:.6f}')
            lines.append(f'continuarm_request_seconds_count{{verb="{verb}"}} {total}')
        return lines

    def _of_experiments(self) -> list[str]:
        numbers: dict[str, list[str]] = {}
        for running in self._experiments.all_running():
            stats = running.gate.alone(running.stats)
            name = running.name.replace("\\", "\\\\").replace('"', '\\"')
            for what, value in stats.items():
                numbers.setdefault(what, []).append(
                    f'continuarm_{what}{{experiment="{name}"}} {value:g}'
                )
        return [
            line
            for what, lines in numbers.items()
            for line in (f"# TYPE continuarm_{what} gauge", *lines)
        ]
