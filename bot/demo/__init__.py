"""The demo: a made-up kernel tree, lab, authors who reply, and a list archive, all on loopback.

story.py is the script, tree.py the git tree, inbox.py the archive, catcher.py the mail server that fills it.
The story tests use the same parts.
"""
