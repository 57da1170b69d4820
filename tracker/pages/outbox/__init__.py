"""`/outbox/`: our outgoing mail, as recipients see it, with the reason for each recipient."""
