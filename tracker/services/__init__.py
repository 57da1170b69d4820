"""Writes by rules, or for more than one place: events, summaries, mail states, names, suggestions."""
