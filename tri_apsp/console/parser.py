"""The argument parser of every command line."""

from __future__ import annotations

import argparse
from typing import NoReturn

from tri_apsp.console.exit_status import BAD_INPUT

__all__ = ["Parser"]


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that reports an error as one sentence and exits with BAD_INPUT."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"error: {message.rstrip('.')}; see {self.prog} --help.\n")
