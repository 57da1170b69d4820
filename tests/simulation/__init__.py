"""A simulated year of reports, people and mail, and a count of what happened that shares nothing with the policy."""
