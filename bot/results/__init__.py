"""Results in: recognised, read, stored once, and turned into findings, reports and events."""
