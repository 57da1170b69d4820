"""Where a report stands: a pure fold over its events, and the status text made of it (DESIGN section 4)."""
