"""The report mail: what changed by how much, where, since which commit, and how sure that is."""
