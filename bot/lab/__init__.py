"""What people ask the lab to test: jobs with their patch, for the lab's runners. Nothing of a patch runs here."""
