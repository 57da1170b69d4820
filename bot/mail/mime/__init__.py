"""MIME: bodies and attachments as text, whatever the encoding, the charset or the markup."""
