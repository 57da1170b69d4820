"""Kills workers while they send: `make crash-test` (docs/reliability.md has the method and the results)."""
