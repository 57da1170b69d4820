"""`/v6.12/report/`: the release report, complete except for the prose that people may add."""
