"""Where ledgers are kept: in a file (SQLite), in PostgreSQL, or in memory."""

from continuarm.store.opening import open_store
from continuarm.store.protocol import Store
from continuarm.store.records import Entry, Experiment, Outcome, Record, Snapshot

__all__ = [
    "Appended",
    "Entry",
    "Experiment",
    "Outcome",
    "Record",
    "Snapshot",
    "Store",
    "open_store",
]
