"""What is known, as JSON for programs."""
