"""Bisect results in: one adapter a format, all giving the same value, one function to store it.

`formats.read_path` recognises, `store.take` stores, drop.py watches a directory. The adapters are pure.
"""
