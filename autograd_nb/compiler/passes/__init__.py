"""From a list of steps to a better one."""
