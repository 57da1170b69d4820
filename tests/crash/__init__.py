"""Workers that are killed while they send: `make crash-test` (docs/reliability.md tells how, and what came of it)."""
