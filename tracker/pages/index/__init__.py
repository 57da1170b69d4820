"""`/index/`: the performance index, one number per release, with its parts."""
