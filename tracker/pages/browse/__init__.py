"""The catalog pages: reports by subsystem, machine, metric or author."""
