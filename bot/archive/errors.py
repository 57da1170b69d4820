"""What can be wrong with an archive, said in one line: what, where, and what to do."""


class ArchiveError(Exception):
    """An archive that can't be read, or not to its end."""
