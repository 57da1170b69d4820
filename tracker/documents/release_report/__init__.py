"""The report of a release, as a document."""
