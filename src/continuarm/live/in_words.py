"""What was learned, in words that a shop manager can read."""

from collections.abc import Sequence

from continuarm.words import listed

__all__ = ["contexts_in_words"]

LIKELY = 0.01  # the chance that one of all contexts and coordinates is said to matter in vain


def contexts_in_words(
    chances: Sequence[Sequence[float]],
    cut: Sequence[bool],
    contexts: Sequence[str],
    decisions: Sequence[str],
) -> str:
    """Which contexts matter for which coordinate of the decision, in one bin.

    Parameters
    ----------
    chances : for each context and each coordinate, how likely it is to look as if it mattered
        this much if it did not.
    cut : for each context, whether bins are cut along it: then it matters, too.

    >>> contexts_in_words([[1e-9], [0.4]], [False, False], ["income", "age"], ["price"])
    'income matters for price; nothing shows that age does'
    >>> contexts_in_words([[0.3], [0.4]], [False, False], ["income", "age"], ["price"])
    'nothing shows yet that income and age matter'
    >>> contexts_in_words([[0.3], [1e-9]], [True, False], ["income", "age"], ["price"])
    'income matters, because bins are cut along it; in this bin age matters for price'
    >>> contexts_in_words([[0.3], [0.4]], [True, False], ["income", "age"], ["price"])
    'income matters, because bins are cut along it; in this bin nothing shows that age does'
    """
    matters, within, rest = list[str](), list[str](), list[str]()
    likely, here = LIKELY / max(len(contexts) * len(decisions), 1), any(cut)
    for name, row, is_cut in zip(contexts, chances, cut, strict=True):
        found = [d for d, chance in zip(decisions, row, strict=True) if chance < likely]
        if found:
            within.append(f"{name} matters for {listed(found)}")
        elif is_cut:
            matters.append(f"{name} matters, because bins are cut along it")
        else:
            rest.append(name)
    if rest:
        known = matters or within
        verbs, yet = (("does", "do"), "") if known else (("matters", "matter"), "yet ")
        within.append(f"nothing shows {yet}that {listed(rest)} {verbs[len(rest) > 1]}")
    if here and within:
        within[0] = f"in this bin {within[0]}"
    return "; ".join([*matters, *within])
