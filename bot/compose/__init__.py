"""Report to mail: subject, body, recipients, all functions of values; the words stand in templates/mail/.

`report_mail.compose(told, identity, now)` gives a `Mail`, and `mail.to_bytes` its bytes.
"""
