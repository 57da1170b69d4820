"""Statistics of two sets of samples: means and spreads, changes, and how sure they are."""
