"""What Perfwork knows, as values and functions of values: no Django, no database, no settings."""
