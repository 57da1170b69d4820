"""Search over all reports and their mails."""
