"""Tests of the pages in a real browser: Debian's Chromium, driven by Playwright, with a private server on loopback."""
