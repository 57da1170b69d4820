"""What is wrong with something outside of us, said in one line: what, where, and what to do."""


class Unreadable(Exception):
    """An archive or a git repository that can't be read, or not to its end."""


class Busy(Unreadable):
    """Somebody else is reading it: nothing is wrong, and later is soon enough."""
