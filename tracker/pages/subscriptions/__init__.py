"""Subscriptions by mail."""
