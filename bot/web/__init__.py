"""Endpoints that take data from outside. The pages' URLconf includes this package only by its name."""
