"""The processes that compile and measure configurations."""
