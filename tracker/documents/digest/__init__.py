"""The weekly digest of a release cycle: new, unanswered, fixable and closed regressions."""
