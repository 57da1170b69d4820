"""What changes a report: its event log, its summary, actions of people, suggestions."""
