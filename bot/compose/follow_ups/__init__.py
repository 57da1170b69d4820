"""Mails that follow a report in its thread: a file a kind."""
