"""Choosing which configurations to evaluate, with Optuna."""
