"""`/inbox/`: the review queue, and the progress of reading archives and trees."""
