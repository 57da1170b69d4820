"""People who sign in: their addresses, their rights, and the links that are mailed to them."""
