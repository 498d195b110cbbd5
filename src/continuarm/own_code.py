"""What a user's own code raises becomes one of our errors, with what it was called for."""

from continuarm.errors import ContinuarmError

__all__ = ["OwnCode"]

PASSED_ON = (ContinuarmError, MemoryError)


class OwnCode:
    """`with OwnCode(PolicyError, "my policy must decide")`: the rule that raising would break."""

    __slots__ = ("error", "rule")

    def __init__(self, error: type[ContinuarmError], rule: str) -> None:
        self.error, self.rule = error, rule

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, raised: BaseException | None, trace: object) -> None:
        if isinstance(raised, Exception) and not isinstance(raised, PASSED_ON):
            what = f"{type(raised).__name__}: {raised}"
            raise self.error(f"{self.rule}, but got {what}") from raised
