"""`/healthz` and `/readyz`: for load balancers and process managers."""
