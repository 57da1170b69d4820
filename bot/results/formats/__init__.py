"""Formats of results: one adapter a format, from text or files to a result value. Pure."""
