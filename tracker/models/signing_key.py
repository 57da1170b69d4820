"""The public keys of mail domains, as DNS tells or told them: a signature is checked without asking anybody."""

from __future__ import annotations

from django.db import models


class SigningKey(models.Model):
    """One DKIM record (RFC 6376 section 3.6). An empty record says that there is none, as of `fetched_at`."""

    name = models.TextField(unique=True, help_text="20230601._domainkey.gmail.com")
    record = models.TextField(blank=True, help_text='the text of the record: "v=DKIM1; k=rsa; p=…"')
    fetched_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
