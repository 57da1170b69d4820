"""The help pages: docs/*.md, rendered as HTML."""
