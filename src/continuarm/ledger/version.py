"""Which fold this is: what could change a bit of a state that events are folded into.

That is the code of what decides and learns, the compiler, and the processor whose instructions it
writes. Two processes of one version that fold the same events hold the same bits.
"""

import hashlib
import platform
from functools import cache
from pathlib import Path

import llvmlite
import llvmlite.binding
import numba
import numpy as np

__all__ = ["fold_version"]

ROOMS = ("core", "live", "ledger", "sets")  # whose code a state depends on
BESIDE = ("box.py", "numbers.py", "checks.py", "strokes.py")


@cache
def fold_version() -> str:
    """A short text; another one may fold to other bits."""
    digest, package = hashlib.sha256(), Path(__file__).parents[1]
    files = [path for room in ROOMS for path in sorted((package / room).rglob("*.py"))]
    for path in [*files, *(package / name for name in BESIDE)]:
        digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    tools = (numba.__version__, llvmlite.__version__, np.__version__, platform.machine())
    digest.update("\0".join(tools).encode())
    digest.update(llvmlite.binding.get_host_cpu_name().encode())
    digest.update(llvmlite.binding.get_host_cpu_features().flatten().encode())
    return digest.hexdigest()[:16]
