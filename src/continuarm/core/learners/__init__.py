"""What runs inside one bin. See `continuarm.core.learners.protocol`."""
