"""The tables of a robot's report."""
