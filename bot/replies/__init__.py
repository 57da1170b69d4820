"""What a mail says: raw bytes → Mail → Reading. Pure functions of values; no database, no settings.

`mail.parse(raw)` never fails on junk; what it had to guess stands in `problems`.
One file an idea: addresses, headers, parts, text (own words), commands, trailers, patches, links, kinds.
To add a command: a member of `commands.Word` and a row in `effects.COMMANDED`.
"""
