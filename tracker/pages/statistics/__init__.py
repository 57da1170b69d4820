"""The numbers behind the reports: how fast they are answered and fixed, and how often they were wrong."""
