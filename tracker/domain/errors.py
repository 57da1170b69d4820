"""What somebody has handed in and can't be taken."""


class Unfit(ValueError):
    """Its words say what was expected, and what was found."""
