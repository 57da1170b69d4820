"""Mail in: sources yield raw mail, a prefilter drops what can't concern us, filing does the rest."""
