"""The exception for rejected input."""


class InvalidInput(ValueError):
    """Rejected input; the message says what was expected and what was found."""
