"""Import of bisect and release results: one adapter per format, one common value, one entry point.

`formats` detects the format of files and streams, `intake.take_in` imports what it yields, `store` keeps each result
once and `batch` turns it into findings, reports and events. The adapters (perf_bisect_result, lkp, bisect_log, kcidb)
are pure functions.
"""
