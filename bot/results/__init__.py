"""Bisect results in: one adapter a format, all giving the same value, one way in for all.

`formats` recognises files and streams, `intake.take_in` takes what it finds, `store` keeps each result once and
`batch` puts it in its place. The adapters (perf_bisect_result, lkp, bisect_log, kcidb) are functions of values.
"""
