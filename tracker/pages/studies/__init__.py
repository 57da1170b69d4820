"""`/compare/`, `/studies/`: kernels side by side for a question: which variant wins, how versions follow each other."""
