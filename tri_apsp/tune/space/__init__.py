"""What may be tried: tasks, parameters, candidates."""
