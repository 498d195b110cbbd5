"""What a store keeps, as values: experiments, entries of a ledger, and what became of them."""

from typing import Final, NamedTuple

__all__ = [
    "ASKED_BEFORE",
    "CLOSED_BEFORE",
    "KEY_TAKEN",
    "MOVED_ON",
    "NEVER_ASKED",
    "SCOPES",
    "Appended",
    "Entry",
    "Experiment",
    "Kept",
    "Outcome",
    "Record",
    "Snapshot",
    "Token",
    "is_same",
]

# Why an entry was refused.
ASKED_BEFORE: Final = "asked before"  # a decision of this number
NEVER_ASKED: Final = "never asked"  # the decision that it closes
CLOSED_BEFORE: Final = "closed before"  # that decision was told, forgotten or expired
KEY_TAKEN: Final = "key taken"  # by an earlier entry
MOVED_ON: Final = "moved on"  # the ledger has, since the position that the group is for

SCOPES: Final = ("read", "decide", "admin")  # of tokens; each may do what those before it may


class Experiment(NamedTuple):
    """One experiment: its settings, and how far its ledger goes.

    settings : text, which the store does not look into.
    archived : nobody decides in it any more.
    begins : the ledger's entries up to this position were erased, but for decisions that were open
        then; a snapshot stands for them.
    head : the position of the newest entry; 0: there is none yet.
    time : of the newest entry, in seconds since 1970.
    numbers : of an earlier version; nothing looks at it.
    clock_offset : seconds by which the times of its entries are ahead of the store's clock.
    """

    name: str
    settings: str
    archived: bool = False
    begins: int = 0
    head: int = 0
    time: float = 0.0
    numbers: int = 0
    clock_offset: float = 0.0


class Entry(NamedTuple):
    """What is to be appended to a ledger.

    kind : of event.
    body : the event as text, which the store does not look into.
    opens : the decision that it hands out; no other entry may.
    closes : the decision that it tells, forgets or lets expire; it must be open.
    key : of a client, so that a second try finds the first; unique in the experiment.
    """

    kind: str
    body: str
    opens: str | None = None
    closes: str | None = None
    key: str | None = None


class Record(NamedTuple):
    """An entry as it stands in a ledger, at a position and a time that the store gave."""

    position: int
    time: float
    kind: str
    body: str
    opens: str | None = None
    closes: str | None = None
    key: str | None = None


def is_same(one: Record, other: Record) -> bool:
    """Whether two records that were read of one ledger are one; keys may have been scrubbed.

    Position, time and kind do not tell that after a restore, where the clock is behind the ledger.
    """
    return one[:6] == other[:6]


class Outcome(NamedTuple):
    """What became of one entry of a group.

    refused : why it was not appended; None: it was.
    record : the entry in the ledger; where it was refused, the earlier one that stands in its way.
    """

    refused: str | None
    record: Record | None


class Appended(NamedTuple):
    """What became of a group, and how far its ledger goes now, also if all of it was refused.

    outcomes : one for each entry, in order.
    head : the position of the ledger's newest entry.
    """

    outcomes: list[Outcome]
    head: int


class Snapshot(NamedTuple):
    """The state of an experiment at a position of its ledger.

    version : of the fold that made it: only the same makes the same bits.
    digest : of the state.
    """

    position: int
    version: str
    digest: str
    state: bytes


class Kept(NamedTuple):
    """What is known of a snapshot without its state.

    time : when it was kept, in seconds since 1970; infinite: it is never let go.
    """

    position: int
    version: str
    digest: str
    time: float


class Token(NamedTuple):
    """Who may do what; the token itself is known to its owner alone.

    scope : one of `SCOPES`.
    hashed : its SHA-256.
    created : when, in seconds since 1970.
    """

    name: str
    scope: str
    hashed: str
    created: float
