"""A study, as a document: kernels side by side for a question."""
