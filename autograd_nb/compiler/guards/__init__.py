"""When a captured program holds: what the function can reach, and quick tests that it is as it was."""
