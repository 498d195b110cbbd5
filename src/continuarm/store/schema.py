"""The tables of a store, and how those of an older version become those of this one."""

from typing import Final

from continuarm.errors import StoreError

__all__ = ["VERSION", "NoStoreError", "missing", "statements"]

# A migration's statements, in order; version n is what the first n of them make. Each is run once,
# and never changed afterwards: a change of the tables is one more migration.
MIGRATIONS: Final = (
    (
        """
        CREATE TABLE experiments (
            number {identity},
            name TEXT NOT NULL UNIQUE,
            settings TEXT NOT NULL,
            archived INTEGER NOT NULL DEFAULT 0,
            begins BIGINT NOT NULL DEFAULT 0,
            head BIGINT NOT NULL DEFAULT 0,
            time {float} NOT NULL DEFAULT 0,
            numbers BIGINT NOT NULL DEFAULT 0
        )
        """,
        """
        CREATE TABLE events (
            experiment BIGINT NOT NULL,
            position BIGINT NOT NULL,
            time {float} NOT NULL,
            kind TEXT NOT NULL,
            body TEXT NOT NULL,
            opens TEXT,
            closes TEXT,
            client_key TEXT,
            PRIMARY KEY (experiment, position)
        ) {clustered}
        """,
        "CREATE UNIQUE INDEX events_opens ON events (experiment, opens) WHERE opens IS NOT NULL",
        "CREATE UNIQUE INDEX events_closes ON events (experiment, closes) "
        "WHERE closes IS NOT NULL",
        "CREATE UNIQUE INDEX events_keys ON events (experiment, client_key) "
        "WHERE client_key IS NOT NULL",
        """
        CREATE TABLE snapshots (
            experiment BIGINT NOT NULL,
            position BIGINT NOT NULL,
            version TEXT NOT NULL,
            digest TEXT NOT NULL,
            state {bytes} NOT NULL,
            PRIMARY KEY (experiment, position, version)
        )
        """,
    ),
    (
        """
        CREATE TABLE tokens (
            name TEXT NOT NULL PRIMARY KEY,
            scope TEXT NOT NULL,
            hashed TEXT NOT NULL UNIQUE,
            created {float} NOT NULL
        )
        """,
    ),
    (
        "CREATE INDEX events_by_kind ON events (experiment, kind, position) "
        "WHERE opens IS NULL AND closes IS NULL",
    ),
    (
        "ALTER TABLE events ADD COLUMN checksum BIGINT",
        "ALTER TABLE experiments ADD COLUMN clock_offset {float} NOT NULL DEFAULT 0",
        "ALTER TABLE snapshots ADD COLUMN time {float} NOT NULL DEFAULT 0",
        "CREATE TABLE continuarm_settings (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL)",
        "INSERT INTO continuarm_settings (name, value) SELECT 'tokens', 'needed' "
        "WHERE EXISTS (SELECT 1 FROM tokens)",
    ),
)
VERSION: Final = len(MIGRATIONS)


def statements(found: int, where: str, words: dict[str, str]) -> list[str]:
    """What makes tables of an older version, 0 where there are none, those of this one.

    words : what a database calls the types of columns.
    """
    if not 0 <= found <= VERSION:
        raise StoreError(
            f"this Continuarm reads stores up to version {VERSION}, but {where} has version "
            f"{found}: take a newer one"
        )
    return [text.format(**words) for migration in MIGRATIONS[found:] for text in migration]


class NoStoreError(StoreError):
    """There is no store, and none is to be made."""


def missing(where: str, what: str = "is none") -> NoStoreError:
    """There is no store, and none is to be made."""
    return NoStoreError(f"a store must be there to look into it, but {where} {what}")
