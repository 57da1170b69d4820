"""Care for the data: backup and restore, pruning what nobody needs any more, erasing a person's data."""
