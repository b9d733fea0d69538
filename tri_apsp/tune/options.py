"""The options of python -m tri_apsp.tune."""

from __future__ import annotations

import argparse
from pathlib import Path

from tri_apsp.console.exit_status import BAD_INPUT, FAILED, INTERRUPTED
from tri_apsp.console.options import DTYPE_NAMES, add_device, add_json
from tri_apsp.console.parser import Parser
from tri_apsp.tune.sweep.plan import BUDGETS, SAMPLERS
from tri_apsp.tuned import KERNELS, SIGNS

__all__ = ["build_parser"]

_KERNELS = list(dict.fromkeys(kernel for kernels in KERNELS.values() for kernel in kernels))

_DESCRIPTION = """\
Find the fastest configuration for this machine, and keep it in tuned files, which every later solve uses. Without options,
everything useful for the GPU is tuned, or for the CPU where there is none.
"""

_EPILOG = f"""\
Ctrl-C or SIGTERM at any time keeps what is known; --resume continues. Environment: TRI_APSP_CONFIG_DIR, where tuned files are
looked for first, and written to; TRI_APSP_REQUIRE_TUNED=1, a solve for which nothing was tuned is an error.

exit status:
    0  done
  {FAILED:3}  some task could not be tuned, a size does not fit the memory, or the engine cannot run here
  {BAD_INPUT:3}  an argument breaks a rule, or a file or a database cannot be used
  {INTERRUPTED:3}  interrupted (Ctrl-C, SIGTERM)
"""


def build_parser() -> Parser:
    """Return the parser."""
    parser = Parser(
        prog="python -m tri_apsp.tune",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_argument_group("what to tune")
    what.add_argument("--kernel", nargs="+", choices=_KERNELS, default=[], help="default: all of the engine")
    what.add_argument(
        "--n",
        type=int,
        nargs="+",
        default=[],
        help="sizes, which must fit the memory; a kernel that a solve of that size runs at a smaller one is tuned at that, and "
        "batches that do not fit are left out unless --kernel names them; default: those of the effort that fit",
    )
    what.add_argument("--dtype", nargs="+", choices=DTYPE_NAMES, default=[], help="default: those of the effort")
    what.add_argument("--sign", nargs="+", choices=SIGNS, default=[], help="signs of the weights; default: those of the effort")
    add_device(what)
    what.add_argument("--gpus", type=int, default=1, metavar="G", help="measure on so many GPUs side by side; default: 1")

    how = parser.add_argument_group("how")
    how.add_argument(
        "--effort",
        choices=list(BUDGETS),
        default="quick",
        help=f"quick (default): up to {BUDGETS['quick'].seconds:.0f} s a task; full: up to {BUDGETS['full'].seconds:.0f} s",
    )
    trials = ", ".join(f"{budget.trials} {effort}" for effort, budget in BUDGETS.items())
    how.add_argument("--trials", type=int, metavar="T", help=f"most configurations a task; default: {trials}")
    how.add_argument("--time-budget", type=float, metavar="SECONDS", help="in all, shared over the tasks")
    how.add_argument(
        "--sampler",
        choices=SAMPLERS,
        default="tpe",
        help="default: tpe; where --trials allows, all are tried",
    )
    how.add_argument("--seed", type=int, default=0, help="of the sampler; default: 0")
    how.add_argument(
        "--save-dir", type=Path, metavar="DIR", help="where tuned files go; `python -m tri_apsp info` has the default"
    )
    how.add_argument(
        "--storage",
        metavar="URL",
        help="database for the trials, which machines with the same GPU may share, such as sqlite:///studies.db or "
        "postgresql+psycopg://user@host/name; default: a journal in this user's data directory",
    )
    how.add_argument("--resume", action="store_true", help="continue the newest studies, and join those of other machines")
    how.add_argument("--force", action="store_true", help="replace tuned files that cannot be used")
    how.add_argument("--report", type=Path, metavar="DIR", help="also write every trial there, and what it was measured with")

    instead = parser.add_argument_group("instead of tuning").add_mutually_exclusive_group()
    instead.add_argument("--dry-run", action="store_true", help="show the tasks, their files, and the sizes of their spaces")
    instead.add_argument("--list", action="store_true", help="list the tuned files, and which of them are used here")
    instead.add_argument("--show", action="store_true", help="show the configurations that are used here")
    instead.add_argument("--verify", action="store_true", help="time the stored winners against the defaults again")
    add_json(parser, "device, seconds, interrupted, files, results; or what was asked for instead")
    return parser
