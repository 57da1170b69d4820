"""What the lab owes, and its jobs."""
