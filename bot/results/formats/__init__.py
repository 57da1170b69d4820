"""Formats of results, a file each: recognise, check, read."""
