"""Import of bisect and release results: one adapter per format, one common value, one entry point.

`recognise` detects the format of files and streams, `formats/` has the adapters, which are pure functions, `intake`
imports what they yield, and `storage/` keeps each result once and turns it into findings, reports and events.
"""
