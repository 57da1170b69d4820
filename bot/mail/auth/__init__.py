"""Verify who wrote a mail (DESIGN rule 8): by DKIM, by a server that we trust, or by a developer's key.

Pure: keys and servers are passed in as a value. `judge.judge` tries the three proofs in turn; one file per proof.
"""
