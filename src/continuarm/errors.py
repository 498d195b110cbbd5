"""What Continuarm raises.

    ContinuarmError
    ├── InputError (ValueError)      a context, decision or payoff that breaks its rule
    │   ├── KeyConflictError         a client's key that was given with something else before
    │   ├── SegmentConflictError     a segment that is frozen already, or is not
    │   └── UnknownBinError          a bin that was never made
    ├── SettingsError (ValueError)   an option of a policy, a problem or a run that breaks its rule
    ├── ProblemError (ValueError)    a problem whose functions do not do what they promise
    ├── PolicyError (ValueError)     a policy or a start of your own that breaks its promise
    ├── UnknownDecisionError (KeyError)   a payoff for a decision that is not open
    │   ├── AlreadyToldError         it was told before
    │   └── ExpiredDecisionError     it is over its time to live
    ├── BusyError (RuntimeError)     a policy that was called from inside a call of it
    ├── SavedFileError (ValueError)  a file that `load` or a table's reader cannot take
    │   └── MissingFileError (FileNotFoundError)   a file, or the folder of one, that is not there
    ├── StoreError (RuntimeError)    a store that cannot be used as it is
    │   ├── UnavailableError         it does not answer now, or is full: try again
    │   ├── UnknownExperimentError (KeyError)   an experiment that nobody has created
    │   └── ExperimentConflictError  what an experiment is, or was given, speaks against it
    ├── DeniedError (PermissionError)   a service whose token is missing or does not reach so far
    └── MissingExtraError (ImportError)   an optional part that is not installed

Every message states the rule first and then the value that broke it.
"""

__all__ = [
    "AlreadyToldError",
    "BestDecisionWarning",
    "BusyError",
    "ContinuarmError",
    "DeniedError",
    "ExperimentConflictError",
    "ExpiredDecisionError",
    "InputError",
    "KeyConflictError",
    "MissingExtraError",
    "MissingFileError",
    "PolicyError",
    "ProblemError",
    "SavedFileError",
    "SegmentConflictError",
    "SettingsError",
    "StepWarning",
    "StoreError",
    "UnavailableError",
    "UnknownBinError",
    "UnknownDecisionError",
    "UnknownExperimentError",
]


class ContinuarmError(Exception):
    """The base of all errors of this package.

    field : which part of a request it is about, where that is known.
    """

    field: str | None = None


class InputError(ContinuarmError, ValueError):
    """A context, decision or payoff breaks its rule."""


class KeyConflictError(InputError):
    """A client's key was given with something else before."""


class SegmentConflictError(InputError):
    """A segment should be frozen that is, or unfrozen that is not."""


class UnknownBinError(InputError):
    """A bin was never made."""


class SettingsError(ContinuarmError, ValueError):
    """An option of a policy, a problem or a run breaks its rule."""


class ProblemError(ContinuarmError, ValueError):
    """A problem's functions do not do what they promise."""


class PolicyError(ContinuarmError, ValueError):
    """A policy of your own, or a function to start from, raises or answers what is no decision."""


class UnknownDecisionError(ContinuarmError, KeyError):
    """A payoff was told for a decision that is not open."""

    __str__ = Exception.__str__  # KeyError would print the repr of the message


class AlreadyToldError(UnknownDecisionError):
    """A payoff was told twice."""


class ExpiredDecisionError(UnknownDecisionError):
    """A payoff came after the decision's time to live."""


class BusyError(ContinuarmError, RuntimeError):
    """A policy was called by a signal handler or a listener while it was at work."""


class SavedFileError(ContinuarmError, ValueError):
    """A file is damaged, of another kind or of a newer version."""


class MissingFileError(SavedFileError, FileNotFoundError):
    """A file that should be read, or the folder that it should be written to, is not there."""


class StoreError(ContinuarmError, RuntimeError):
    """A store cannot be used as it is: of a newer version, damaged, closed."""


class UnavailableError(StoreError):
    """A store does not answer now, or is full; nothing is half done."""


class UnknownExperimentError(StoreError, KeyError):
    """Nobody has created an experiment of this name."""

    __str__ = Exception.__str__


class ExperimentConflictError(StoreError):
    """An experiment has other settings, or is archived."""


class DeniedError(ContinuarmError, PermissionError):
    """A service needs a token, or one whose scope reaches further."""


class MissingExtraError(ContinuarmError, ImportError):
    """An optional part of the package is not installed."""


class StepWarning(UserWarning):
    """The step lies outside the interval in which the paper proves its rate."""


class BestDecisionWarning(UserWarning):
    """A decision earns more than the best one of a problem."""
