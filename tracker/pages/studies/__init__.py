"""`/compare/`, `/studies/`: kernels side by side, to see which variant wins or how versions develop."""
