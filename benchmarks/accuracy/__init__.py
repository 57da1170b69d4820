"""How right readings are: against labels made by hand, on what they were not made from."""
