"""`/tool-output/`: profiles and counters, shown and compared."""
