"""The documentation: docs/*.md, built as a site (properdocs.yml)."""
