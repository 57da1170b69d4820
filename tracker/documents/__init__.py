"""Documents as values: blocks in their order, written as a page, as Markdown, or as text of 78 columns."""
