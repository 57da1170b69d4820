"""Whether a mail may leave by itself, and how fast mail goes."""
