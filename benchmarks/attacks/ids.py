"""No number of a decision ever came twice, in any part of the attack."""

import json

from benchmarks.attacks.place import Place
from benchmarks.attacks.result import Case, Defect, Tally

__all__ = ["CASES"]


def ids(place: Place, tally: Tally) -> None:
    """Read the logs of all parts that are in the folder."""
    seen: dict[str, tuple[str, str | None]] = {}
    for log in sorted(place.folder.glob("*.acknowledged")):
        for line in log.read_text().splitlines():
            kind, _, id_, *rest = json.loads(line)
            if kind == "asked":
                here = (log.stem, rest[0])
                if seen.setdefault(id_, here) != here:
                    tally.wrong += 1
                    example = f"{id_} in {seen[id_]} and in {here}"
    tally.times = tally.decisions = len(seen)
    if tally.wrong:
        raise Defect(f"{tally.wrong:,} numbers were given twice, such as {example}")
    tally.came = "each came once"


CASES = [Case("ids", "all numbers of decisions that were acknowledged in any part", ids)]
