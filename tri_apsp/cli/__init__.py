"""The command line: one module a subcommand, imported only when it is named, since each needs torch."""
