"""Who may do what, and how people sign in."""
