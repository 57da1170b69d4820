"""Time that passes in a report: deadlines, how long answers took, what may be closed."""
