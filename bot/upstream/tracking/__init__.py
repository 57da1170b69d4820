"""One tree, followed: fetched, walked, and stored."""
