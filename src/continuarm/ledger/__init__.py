"""Policies that live in a store: ledgers, folded in every process that shares them."""

from continuarm.ledger.shared import SharedPolicy, share

__all__ = ["SharedPolicy", "share"]
