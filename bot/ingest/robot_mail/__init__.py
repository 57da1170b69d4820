"""Performance reports by the kernel test robot, as mail: bytes → Mail → RobotReport. Pure.

report.py reads the prose from top to bottom, table.py the comparison tables, box.py the box of
further impact. The grammar is that of the reports of 2019 to 2026.
"""
