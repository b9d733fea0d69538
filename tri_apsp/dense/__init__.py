"""The dense plan and its steps, which run.py puts in their order; packed graphs, min_plus and
warm-up.
"""
