"""Options of command lines as values, so that each is described once; types of arguments."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tri_apsp.engines import ENGINES
from tri_apsp.errors import InputError
from tri_apsp.messages import counted
from tri_apsp.semirings import DTYPES_BY_NAME


@dataclass(frozen=True)
class Option:
    """An argument of a command line.

    Attributes:
        names: such as "-o" and "--out", or the name of a positional argument.
        settings: the others of argparse's add_argument.
    """

    names: tuple[str, ...]
    settings: dict[str, Any]

    def but(self, **settings: Any) -> "Option":
        """Return the option with other settings, or with more of them."""
        return Option(self.names, self.settings | settings)


def option(*names: str, **settings: Any) -> Option:
    """Return an option, with the arguments of add_argument."""
    return Option(names, settings)


def add_options(parser: argparse._ActionsContainer, *options: Option) -> None:
    """Add options to a parser or a group."""
    for each in options:
        parser.add_argument(*each.names, **each.settings)


DEVICE = option(
    "--device", default="auto", help="auto (default: CUDA if there is one), cpu, cuda or cuda:N"
)
DEVICES = DEVICE.but(
    help=f"{DEVICE.settings['help']}; several GPUs: all, or a list such as cuda:0,cuda:1"
)
ENGINE = option("--engine", choices=list(ENGINES), help="default: the best that runs on the device")


def json_of(keys: str) -> Option:
    """Return --json; `keys` is the part of the help that lists the keys of the object."""
    return option("--json", action="store_true", help=f"print one JSON object instead: {keys}")


def at_least(least: int) -> Callable[[str], int]:
    """Return an argparse type: an integer that is at least `least`."""

    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"must be an integer from {least}, but is {text!r}")
        return int(text)

    return parse


DTYPES = option(
    "--dtype",
    choices=DTYPES_BY_NAME,
    nargs="+",
    default=["float32"],
    metavar="DTYPE",
    help=f"{', '.join(DTYPES_BY_NAME)}; default: float32",
)
BATCH = option(
    "--batch",
    type=at_least(1),
    nargs="+",
    metavar="B",
    help="graphs solved in one call: one count for all of --n, or one for each; default: 1",
)


def counts_for(counts: Sequence[int] | None, sizes: Sequence[int]) -> list[int]:
    """Return the count of --batch for each size of --n.

    Raises:
        InputError: there are neither one nor as many.
    """
    found = list(counts or [1])
    if len(found) not in (1, len(sizes)):
        raise InputError(
            f"--batch must give one count, or one for each of the {counted(len(sizes), 'size')} of "
            f"--n, but gives {len(found)}; give as many."
        )
    return found * len(sizes) if len(found) == 1 else found
