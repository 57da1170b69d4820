"""Commands in a reply: how they are written, and what they do."""
