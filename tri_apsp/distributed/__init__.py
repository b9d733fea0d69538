"""One matrix on several devices or processes, each of which holds some of its rows."""
