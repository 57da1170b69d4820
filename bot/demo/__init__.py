"""The demo: an invented kernel tree, an invented lab, authors who answer, and a list archive, all on loopback.

story.py is the plot, tree.py the git tree, inbox.py the archive, catcher.py the mail server that fills it.
The tests tell their stories with the same parts.
"""
