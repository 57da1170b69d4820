"""Kills workers while they send: `make crash-test` (docs/measured.md has the method and the results)."""
