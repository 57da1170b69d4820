"""Who wrote a mail, behind aliases and rewriting lists."""
