"""Performance reports of the kernel test robot, from mail to a value. Pure."""
