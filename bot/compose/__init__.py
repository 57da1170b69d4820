"""Compose mails from values: subject, body and recipients. Pure; the text is in templates/mail/.

`report_mail.compose(report, identity, now)` returns a `Mail`, and `mail.to_bytes` its bytes.
"""
