"""The decision service: contexts in, decisions out, payoffs back, over HTTP."""
