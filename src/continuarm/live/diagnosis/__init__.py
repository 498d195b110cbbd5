"""The assumptions of a policy, checked on what it has seen: one check per function, by theme."""
