"""The pages of bisect results: all that labs handed in, reported or not, and why."""
