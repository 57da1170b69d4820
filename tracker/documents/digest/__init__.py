"""The week in a release's cycle: what is new, what is silent, what can be fixed, what was."""
