"""Curves: how their points are stored, when they are looked at again, and the noise that is known from them."""
