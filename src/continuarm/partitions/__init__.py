"""Which bin a context falls in. See `continuarm.partitions.protocol`."""
