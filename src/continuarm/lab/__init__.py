"""The laboratory: policies against simulated worlds."""
