"""Which bin a context falls in. See `continuarm.core.partitions.protocol`."""
