"""One file of a policy: no pickle, a format number, a checksum, written whole or not.

continuarm policy, format 2
<SHA-256 of all that follows>
<what the process knows, in JSON, on one line>
<the state of the policy's life>
"""

import glob
import hashlib
import json
import os
import secrets
from pathlib import Path
from threading import RLock
from typing import Any
from weakref import WeakValueDictionary

from continuarm.errors import MissingFileError, SavedFileError
from continuarm.live.gate import Gate

__all__ = ["FORMAT", "gate_of", "read", "write"]

FORMAT = 2
PRIVATE = 0o600  # the mode of a new file; one that is there keeps its own
UNFINISHED = ".unfinished"
MAGIC = b"continuarm policy, format "
_choosing = RLock()
_gates: WeakValueDictionary[str, Gate] = WeakValueDictionary()


def _in_child() -> None:
    """A thread that saved while the process forked is not here to let others in."""
    global _choosing
    _choosing = RLock()
    _gates.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def write(path: str | os.PathLike[str], shell: dict[str, Any], state: bytes) -> None:
    """Write the file; a crash in the middle leaves the old one."""
    body = json.dumps(shell, allow_nan=False).encode() + b"\n" + state
    digest = hashlib.sha256(body).hexdigest().encode()
    target = _target(path)
    _sweep(target)
    beside = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(8)}{UNFINISHED}")
    try:
        with open(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE), "wb") as file:
            file.write(MAGIC + str(FORMAT).encode() + b"\n" + digest + b"\n" + body)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            beside.chmod(target.stat().st_mode)
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the new name, too, outlives a power cut
    finally:
        os.close(folder)


def _target(path: str | os.PathLike[str]) -> Path:
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        raise SavedFileError(
            f"a policy is saved to a file, but {os.fspath(path)!r} is something else"
        )
    if not target.parent.is_dir():
        raise MissingFileError(
            f"the folder of a saved policy must exist, but {os.fspath(target.parent)!r} does not"
        )
    return target


def _sweep(target: Path) -> None:
    """Remove what processes that are gone have left half written."""
    for left in target.parent.glob(f".{glob.escape(target.name)}.*{UNFINISHED}"):
        process = left.name.removeprefix(f".{target.name}.").partition(".")[0]
        if process.isdigit() and not Path("/proc", process).exists() and _is_linux():
            left.unlink(missing_ok=True)


def _is_linux() -> bool:
    return Path("/proc/self").exists()


def gate_of(path: str | os.PathLike[str]) -> Gate:
    """Where one thread of this process saves to a path at a time; from inside it is refused."""
    with _choosing:
        return _gates.setdefault(os.path.realpath(path), Gate())


def _content(path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise MissingFileError(
            f"a saved policy must exist, but {os.fspath(path)!r} does not"
        ) from None
    except OSError as error:
        raise SavedFileError(
            f"a saved policy must be a file that can be read, but {os.fspath(path)!r} is not: "
            f"{error.strerror}"
        ) from error


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], bytes]:
    """What the process knew, and the state, of a file that is whole."""
    content = _content(path)
    first, _, rest = content.partition(b"\n")
    digest, _, body = rest.partition(b"\n")
    number = first.removeprefix(MAGIC)
    if not first.startswith(MAGIC) or not number.isdigit() or len(number) > 9:
        raise SavedFileError(f"a file written by `save` is needed, but got {os.fspath(path)!r}")
    if int(number) != FORMAT:
        raise SavedFileError(
            f"the file's format must be {FORMAT}, which this version reads, "
            f"but got {int(number)} in {os.fspath(path)!r}"
        )
    if hashlib.sha256(body).hexdigest().encode() != digest:
        raise SavedFileError(
            f"the file must be as it was written, but {os.fspath(path)!r} is damaged"
        )
    shell, _, state = body.partition(b"\n")
    try:
        known: dict[str, Any] = json.loads(shell)
    except ValueError as error:
        raise SavedFileError(f"the file's third line must be JSON, but got {error}") from None
    return known, state
