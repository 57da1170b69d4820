"""What keeps the processes of one installation apart and alive: children, leases, the queue of files."""
