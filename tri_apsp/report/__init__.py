"""Reports: studies measured on this machine, each as raw rows (CSV), plots (PNG and SVG) and a page (Markdown)."""
