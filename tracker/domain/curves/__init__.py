"""Curves: one metric of one scenario on one machine, measured at build after build. Pure."""
