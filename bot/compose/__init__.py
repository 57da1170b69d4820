"""A report as a mail, with its recipients and checks. Pure; the text is in templates/mail/."""
