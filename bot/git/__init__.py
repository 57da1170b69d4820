"""Git as a subprocess: repositories, logs, refs, and what commits say. No database."""
