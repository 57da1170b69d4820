"""Bisect results in: one adapter a format, all giving the same value, one function to store it.

`formats.read(path)` recognises; `store.take(result)` stores. The adapters are pure.
"""
