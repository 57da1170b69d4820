"""Permissions, and signing in."""
