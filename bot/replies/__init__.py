"""What a mail says: raw bytes → Mail → Reading. Pure functions of values; no database, no settings.

`mail.parse(raw)` never fails on junk; what it had to guess stands in `problems`.
One file an idea. Bytes to Mail: charsets, headers, addresses, parts (with flowed and html_text), mail. Mail to
Reading: text (own words, with languages), sentences, addressed, commands, trailers, patches, links, notices, kinds,
trust/ (who wrote it), reading. Reading to what follows: rules/ and meaning (intents), courtesy, measured (the lab's
tables), known and aliases (which reports, which roles), named, commanded and effects (what it does), events.
To add a command: a member of `commands.Word` and a row in `commanded.COMMANDED`.
"""
