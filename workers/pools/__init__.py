"""What submits jobs to a cluster that has a queue of its own."""
