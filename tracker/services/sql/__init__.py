"""What the ORM does not offer: statements for thousands of rows, advisory locks."""
