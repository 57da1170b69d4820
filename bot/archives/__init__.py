"""Mail archives: sources/ yield raw mail, prefilter/ drops what can't concern us, filing/ files the rest under reports.

reader.py reads one archive from where it was left (checkpoint.py), a batch at a time (batch.py). sources/ says how to
add a format.
"""
