"""Kinds of outgoing mail, a file each: when it is due, what it says, who gets it."""
