"""Scales and SVG: numbers for the templates that draw them."""
