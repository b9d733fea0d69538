"""The command line: one module per subcommand, and the parser that lists them."""
