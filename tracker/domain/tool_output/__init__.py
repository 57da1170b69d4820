"""Files that show why a number moved: kept as they came, read when they are shown, laid side by side."""
