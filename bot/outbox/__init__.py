"""The life of an outgoing mail: every mail once, whatever dies (DESIGN rule 5)."""
