"""load: the inverse of `policy.save`."""

import os

from continuarm import saved_file
from continuarm.errors import SavedFileError
from continuarm.policies.policy import BinnedPolicy
from continuarm.policies.saving import restore

__all__ = ["load"]


def load(path: str | os.PathLike[str]) -> BinnedPolicy:
    """The policy that `save` wrote: it continues as the saved one would have.

    Its random numbers, and the decisions that were open, are those of the saved one. Policies of
    your own are found by the name of their class, once that is imported.
    """
    header, arrays = saved_file.read(path)
    kinds = [kind for kind in _below(BinnedPolicy) if kind.__name__ == header["policy"]]
    if not kinds:
        raise SavedFileError(f"the policy's class must be imported, but got {header['policy']!r}")
    policy: BinnedPolicy = restore(kinds[-1], header, arrays)
    return policy


def _below(kind: type) -> list[type]:
    children: list[type] = kind.__subclasses__()
    return [found for child in children for found in (child, *_below(child))]
