"""`/v6.12/report/`: what a release brought, complete, so that only the prose remains to people."""
