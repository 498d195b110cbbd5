"""Where ledgers are kept: in a file (SQLite), in PostgreSQL, or in memory."""

from continuarm.store.opening import open_store
from continuarm.store.protocol import Store
from continuarm.store.records import Appended, Entry, Experiment, Kept, Outcome, Record, Snapshot

__all__ = [
    "Appended",
    "Entry",
    "Experiment",
    "Kept",
    "Outcome",
    "Record",
    "Snapshot",
    "Store",
    "open_store",
]
