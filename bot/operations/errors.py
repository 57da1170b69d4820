"""Errors of backup and restore, each said in one line: what is wrong, and what to do."""


class BackupError(Exception):
    """A backup can't be made, read or restored."""
