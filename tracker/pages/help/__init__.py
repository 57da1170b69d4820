"""The pages for people who answer our mail: docs/*.md, rendered."""
