"""Performance reports by the kernel test robot, as mail: bytes → Mail → RobotReport. Pure.

recogniser.py looks at bytes only; report.py puts a report together from what the other files read, one part each, from
the sentence that claims (claim.py) to the rows (table.py); doubts.py asks whether the parts agree. The grammar is that
of the reports of 2019 to 2026. To read one more line: add it to the file of its part, to as_json.py, and to the fields
of a report in tests/mail/reports.

The text is what the mail's charset says, else UTF-8, else windows-1252, else latin-1 (bot/mail/mime/charsets.py): most
reports declare iso-8859-1, and their ± is the byte B1.
"""
