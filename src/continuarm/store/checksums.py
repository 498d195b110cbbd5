"""Checksums: whether a record or a snapshot is as it was written."""

import hashlib
import struct
import zlib
from collections.abc import Callable, Iterable
from typing import Any

from continuarm.errors import StoreError
from continuarm.store.records import Record, Snapshot

__all__ = ["DamagedError", "checked", "checksum_of", "digest_of", "fits", "is_whole"]

NUMBERS = struct.Struct("<qd")


class DamagedError(StoreError):
    """A record is not as it was written."""


def checksum_of(record: Record) -> int:
    """The CRC-32 of all that a record says; no text of a record has a zero in it."""
    position, time, kind, body, *names = record
    texts = (kind, body, *("" if name is None else f"+{name}" for name in names))
    return zlib.crc32(NUMBERS.pack(position, time) + "\0".join(texts).encode())


def checked(
    name: str, rows: Iterable[tuple[Any, ...]], is_early: Callable[[int], bool]
) -> list[Record]:
    """The records of an experiment, in their order; a row ends with its checksum.

    is_early : whether all before a position were written by an earlier version, which had no
        checksums; only then a record may be without.
    """
    found, is_bare = list[Record](), False  # whether the one before has no checksum
    for *fields, checksum in rows:
        record = Record(*fields)
        if not fits(record, checksum):
            raise DamagedError(
                f"a record must be as it was written, but record {record.position!r} of {name!r} "
                "is damaged"
            )
        if checksum is None and not (is_bare or (not found and is_early(record.position))):
            raise DamagedError(
                f"a record after others with a checksum must have one, too, but record "
                f"{record.position!r} of {name!r} has none: it is damaged"
            )
        is_bare = checksum is None
        found.append(record)
    return found


def fits(record: Record, checksum: Any) -> bool:
    """Whether a record is as it was written, as far as that is known."""
    try:
        return checksum_of(record) == checksum or checksum is None
    except (TypeError, ValueError, struct.error):  # not even of the types of a record
        return False


def digest_of(state: bytes) -> str:
    """The digest of a snapshot's state."""
    return hashlib.sha256(state).hexdigest()


def is_whole(snapshot: Snapshot) -> bool:
    """Whether a snapshot is as it was kept."""
    return digest_of(snapshot.state) == snapshot.digest
