"""Clusters that have a queue of their own, and the jobs in which they carry runs."""
