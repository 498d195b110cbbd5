"""What tells the decisions of one process from those of others with the same numbers."""

from secrets import token_hex

__all__ = ["Tokens"]


class Tokens:
    """From which number on decisions bear which token; nobody can guess one."""

    def __init__(self, earlier: list[tuple[int, str]] | None = None) -> None:
        self.tokens = list(earlier or [])
        self.newest = ""  # what decisions handed out now bear

    def renew(self, next_id: int, oldest: int) -> None:
        """Mark what is handed out from now on; keep what decisions still bear that are known."""
        before = [one for one in self.tokens if one[0] < next_id]
        needed = max((k for k, one in enumerate(before) if one[0] <= oldest), default=0)
        before = before[needed:]
        self.newest = token_hex(8)
        self.tokens = [*before, (next_id, self.newest)]

    def marks(self, id_: int, token: object) -> bool:
        """Whether the decision of this number was handed out with this token."""
        first, own = self.tokens[-1]
        if first <= id_:  # as almost always
            return own == token
        for first, own in reversed(self.tokens[:-1]):
            if first <= id_:
                return own == token
        return False
