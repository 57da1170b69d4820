"""Understand a mail: raw bytes → Mail → Reading. Pure functions; no database, no settings.

`mail.parse(raw)` never raises; what it had to guess is listed in `problems`.
One idea per file. Bytes to Mail: charsets, headers, addresses, parts (with flowed and html_text), mail. Mail to
Reading: text (own words, with languages), sentences, addressed, commands, trailers, patches, links, notices, kinds,
trust/ (who wrote it), reading. Reading to effects: rules/ and meaning (intents), courtesy, measured (the lab's
tables), known and aliases (which reports, which roles), named, commanded and effects (what the mail does), events.
To add a command: a member in `commands.Word` and a row in `commanded.COMMANDED`.
"""
