"""`/inbox/`: what waits for a person, and how reading goes."""
