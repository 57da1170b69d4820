"""Python runs this at its start if this folder is on PYTHONPATH: its clock is then SKEW_SECONDS off, and goes on.

Only the time of day is; what waits goes by the monotonic clock, as on a machine whose clock is wrong.
"""

from __future__ import annotations

import os
import time

import time_machine

if skew := float(os.environ.get("SKEW_SECONDS", "0")):
    clock = time_machine.travel(0, tick=True).start()
    clock.shift(time_machine.escape_hatch.time.time() + skew - time.time())  # the start may have taken a second
