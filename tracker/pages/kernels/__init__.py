"""Kernels side by side: releases, candidates, commits, or one kernel set up in several ways."""
