"""What talks to the world: results in, mail out, replies and git read. Imports the tracker's models."""
