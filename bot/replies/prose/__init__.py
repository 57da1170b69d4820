"""The prose of a reply: its own sentences, what is courtesy, and whom they address."""
