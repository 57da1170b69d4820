"""What writes to the database in more than one place, or by rules: events, summaries, mail states, names, suggestions."""
