"""All that is compiled: partition × learner as code over arrays, and nothing else."""
