"""Kubernetes as a cluster's queue: an order becomes a JobSet, which Kueue may queue.

`engine` alone needs the official client (`pip install 'stageflow[kubernetes]'`).
"""
