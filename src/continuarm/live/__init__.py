"""What runs in a live system: the policy, its life of events, its state, the named policies."""
