"""Understand a mail: Mail → Reading → effects → events. Pure functions; no database, no settings.

A mail to a Reading (reading.py): its own sentences (prose/), commands (commands/), whom it is about (which_report/),
who wrote it (sender_kind.py, bot/mail/auth), what robots notify of (notices.py). A Reading to effects (effects.py):
what rules/ find in its sentences (meaning.py), what the lab measured (lab_answers.py), what the classifier/ thinks of
it all, as far as trust_policy.py lets it act. Effects to events: to_events.py.
"""
