"""Endpoints that take data from outside, each with an API key, and the server that serves the pages."""
