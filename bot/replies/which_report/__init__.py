"""Which report a mail belongs to, and whether it speaks to it."""
