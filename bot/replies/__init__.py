"""Understand a mail: Mail → Reading → effects → events. Pure functions; no database, no settings.

A mail to a Reading (reading.py): its own sentences (sentences.py), commands (commands.py), who wrote it
(sender_kind.py), whom it addresses and what robots notify of; and which report it is about (which_report.py). A
Reading to effects and events (effects.py): what rules/ find in its sentences, what the lab measured, what the
classifier (classifier.py) thinks of it all, as far as the trust policy lets it act.
"""
