"""Kernels side by side: releases, release candidates, commits, or one kernel set up in several ways."""
