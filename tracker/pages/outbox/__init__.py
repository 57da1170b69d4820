"""`/outbox/`: the mail that we send, as its receivers see it, and why each of them is one."""
