"""Whether it is proven who wrote a mail (DESIGN rule 8): by DKIM, by a server that we trust, by a developer's key.

Pure: keys and servers are handed in as a value. `judge.judge` asks the three proofs in turn; one file a proof.
"""
