"""Reports: studies measured on this machine, each as raw rows (CSV), plots (SVG) and a page
(Markdown). From the root of a clone: python -m reports.
"""
