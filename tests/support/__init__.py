"""What tests stand on: a lab, a list and git trees in miniature; servers, databases, an outbox."""
