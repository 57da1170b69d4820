"""Pages of what reports have in common: a subsystem, a machine, a metric, an author."""
