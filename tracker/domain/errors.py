"""What somebody has handed in and can't be taken."""


class InvalidInput(ValueError):
    """Its words say what was expected, and what was found."""
