"""The only writers of the database's records: each table's changes go through the module of its name here."""
