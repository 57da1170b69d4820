"""The lab's own work list: what people asked it, and have not got yet."""
