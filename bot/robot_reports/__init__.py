"""Performance reports of the kernel test robot, as mail: bytes → ParsedMail → RobotReport. Pure.

report.py looks at raw bytes first, assembles a report from the parts that fields.py and tables.py parse, and checks the
parts against each other. The grammar is that of the reports of 2019 to 2026. To parse one more line: add it to the file
of its part, to bot/explain.py, and to the fields of a report in tests/mail/reports.

The text is decoded with the mail's charset, else UTF-8, else windows-1252, else latin-1 (bot/mail/headers.py):
most reports declare iso-8859-1, and their ± is the byte B1.
"""
