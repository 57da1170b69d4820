"""`/index/`: one number for a release, with all that it is made of."""
