"""What surrounds the transitions of outgoing mail: evidence, failures, and what its reports learn of it."""
