"""The parts of a response surface, one idea per file."""
