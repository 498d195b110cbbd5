"""What runs inside one bin. See `continuarm.learners.protocol`."""
