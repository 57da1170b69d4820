"""Runs in an environment with apache-otava and ruptures: levels on stdin, the changes they find on stdout, as JSON.

`python -m venv E && E/bin/pip install apache-otava ruptures`, then `PERFWORK_OTAVA=E/bin/python` for change_points.py.
Otava pins an older numpy than Perfwork does, so it is compared with, not depended on.
"""

import contextlib
import io
import json
import sys


def otava(levels, max_pvalue, min_magnitude):
    """Otava's own analysis, its defaults but for these."""
    from otava.analysis import compute_change_points

    with contextlib.redirect_stdout(io.StringIO()):
        found, _ = compute_change_points(levels, window_len=50, max_pvalue=max_pvalue, min_magnitude=min_magnitude)
    return [each.index for each in found]


def pelt(levels, penalty, _):
    """PELT with the L2 cost, of levels over the spread of their steps."""
    import numpy as np
    import ruptures

    curve = np.asarray(levels)
    spread = 1.4826 * np.median(np.abs(np.diff(curve))) / 2**0.5 or 1e-9
    return ruptures.Pelt(model="l2", min_size=6).fit(curve / spread).predict(pen=penalty)[:-1]


def main():
    """Answer for every (detector, two parameters) and every series."""
    asked = json.load(sys.stdin)
    detectors = {"otava": otava, "pelt": pelt}
    answers = [
        [[int(index) for index in detectors[name](levels, *parameters)] for levels in asked["series"]]
        for name, *parameters in asked["detectors"]
    ]
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
