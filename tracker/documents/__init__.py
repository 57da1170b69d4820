"""Documents as values: a sequence of blocks, rendered as a web page, Markdown, or text of 78 columns."""
