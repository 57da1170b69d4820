"""What a mail means: its own sentences, which report, by whom, with which effects. Pure."""
