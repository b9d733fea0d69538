"""python -m tri_apsp solve | path | sssp | table | nearest | hops | generate | bench | tune"""

import sys

from tri_apsp.console.interrupts import interruptible_imports

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """Run `argv`, by default the arguments of the process, and return the exit status.

    Raises:
        SystemExit: as argparse does: with status 0 after --help and --version, and with 2 for
            arguments that it refuses.
    """
    with interruptible_imports():
        from tri_apsp.cli.main import main as run
    return run(argv)


if __name__ == "__main__":
    sys.exit(main())
