"""What a mail says: raw bytes → Mail → Reading. Pure functions of values; no database, no settings.

`mail.parse(raw)` never fails on junk; what it had to guess stands in `problems`.
One file an idea. Bytes to Mail: charsets, headers, addresses, parts (with flowed and html_text), mail. Mail to
Reading: text (own words, with languages), commands, trailers, patches, links, notices, kinds, reading. Reading to
what follows: known (which reports), effects (what it does), events.
To add a command: a member of `commands.Word` and a row in `effects.COMMANDED`.
"""
