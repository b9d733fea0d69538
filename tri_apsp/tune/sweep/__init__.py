"""Tuning one task after another, and keeping the results."""
