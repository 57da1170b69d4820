"""The pages of bisect results: all that labs submitted, reported or not, and why."""
