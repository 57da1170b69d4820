"""The search: its query, and what completes one."""
