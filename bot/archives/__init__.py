"""Archives of mail: readers give raw bytes with a position; intake files what concerns our reports.

One file a format, each a generator of `RawMail`; sources.py recognises. To add a format: a file with one
generator, a line in `sources.open_sources`, and a case in `Source.mails`.
"""
