"""Mail as values: raw bytes to a Message and its parts. Pure; nothing in it fails on junk."""
