"""Checksums: whether a record or a snapshot is as it was written."""

import hashlib
import struct
import zlib
from collections.abc import Iterable
from typing import Any

from continuarm.errors import StoreError
from continuarm.store.records import Record, Snapshot

__all__ = ["checked", "checksum_of", "digest_of", "is_whole"]

NUMBERS = struct.Struct("<qd")


def checksum_of(record: Record) -> int:
    """The CRC-32 of all that a record says; no text of a record has a zero in it."""
    position, time, kind, body, *names = record
    texts = (kind, body, *("" if name is None else f"+{name}" for name in names))
    return zlib.crc32(NUMBERS.pack(position, time) + "\0".join(texts).encode())


def checked(name: str, rows: Iterable[tuple[Any, ...]]) -> list[Record]:
    """The records of an experiment; a row ends with its checksum.

    One without was written by an earlier version.
    """
    found = []
    for *fields, checksum in rows:
        record = Record(*fields)
        if not _is_as_written(record, checksum):
            raise StoreError(
                f"a record must be as it was written, but record {record.position!r} of {name!r} "
                "is damaged"
            )
        found.append(record)
    return found


def _is_as_written(record: Record, checksum: Any) -> bool:
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
