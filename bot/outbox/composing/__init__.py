"""What puts mail into the outbox: reports, further mail, reminders, bulletins, subscriptions, answers."""
