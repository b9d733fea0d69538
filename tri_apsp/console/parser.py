"""The argument parser of every command line."""

import argparse
import sys
from pathlib import Path
from typing import NoReturn

from tri_apsp.console.exit_status import BAD_INPUT


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that reports an error as one sentence and exits with BAD_INPUT."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"error: {message.rstrip('.')}; see {self.prog} --help.\n")


def program() -> str:
    """Return the command that was typed: the installed `tri-apsp`, or `python -m tri_apsp`."""
    return "tri-apsp" if Path(sys.argv[0]).stem == "tri-apsp" else "python -m tri_apsp"
