"""One file of a header and arrays: no pickle, a version, a checksum, written whole or not.

continuarm policy, format 1
<SHA-256 of all that follows>
<a header in JSON, on one line>
<the bytes of the arrays that the header lists>
"""

import hashlib
import json
import math
import os
import secrets
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from continuarm.errors import SavedFileError

__all__ = ["FORMAT", "read", "write"]

FORMAT = 1
MAGIC = b"continuarm policy, format "
DTYPES = ("<f8", "<i8")
Arrays = dict[str, NDArray[Any]]


def write(path: str | os.PathLike[str], header: dict[str, Any], arrays: Arrays) -> None:
    """Write the file; a crash in the middle leaves the old one."""
    listed = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
    assert all(dtype in DTYPES for _, dtype, _ in listed)
    text = json.dumps(header | {"arrays": listed}, allow_nan=False)
    body = text.encode() + b"\n" + b"".join(array.tobytes() for array in arrays.values())
    digest = hashlib.sha256(body).hexdigest().encode()
    target = Path(path).resolve()
    beside = target.with_name(f".{secrets.token_hex(8)}")
    try:
        with beside.open("xb") as file:
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


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """The header and the arrays of a file that is whole."""
    content = Path(path).read_bytes()
    first, _, rest = content.partition(b"\n")
    digest, _, body = rest.partition(b"\n")
    number = first.removeprefix(MAGIC)
    if not first.startswith(MAGIC) or not number.isdigit() or len(number) > 9:
        raise SavedFileError(f"a file written by `save` is needed, but got {os.fspath(path)!r}")
    if int(number) > FORMAT:
        raise SavedFileError(
            f"the file's format must be at most {FORMAT}, which this version reads, "
            f"but got {int(number)} in {os.fspath(path)!r}"
        )
    if hashlib.sha256(body).hexdigest().encode() != digest:
        raise SavedFileError(
            f"the file must be as it was written, but {os.fspath(path)!r} is damaged"
        )
    text, _, data = body.partition(b"\n")
    header: dict[str, Any] = json.loads(text)
    arrays, start = {}, 0
    for name, dtype, shape in header.pop("arrays"):
        count = math.prod(shape)
        flat = np.frombuffer(data, dtype, count, start)
        arrays[name] = flat.reshape(shape).copy()
        start += flat.nbytes
    return header, arrays
