"""Results into the database: each once, whole, graded against the known noise."""
