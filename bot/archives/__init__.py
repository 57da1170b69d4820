"""Mail archives: sources yield raw bytes with a position; intake files what concerns our reports.

One file per format, each with a class like `sources.Source`; sources.py detects the format, and says how to add one.
"""
