"""The parts of a smooth surface: one model of the whole context, as one triangle."""
