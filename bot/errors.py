"""Errors of external sources, each said in one line: what is wrong, where, and what to do."""


class Unreadable(Exception):
    """An archive or a git repository can't be read, or only in part."""


class Busy(Unreadable):
    """Another worker is reading it: not a fault; try again later."""
