"""What a metric is: its direction, its unit, and its meaning in words."""
