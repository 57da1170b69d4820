"""Profiles and counters that show why a number changed: stored as received, parsed when shown, side by side."""
