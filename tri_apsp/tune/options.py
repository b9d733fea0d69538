"""The options of python -m tri_apsp.tune."""

from __future__ import annotations

import argparse
from pathlib import Path

from tri_apsp import tuned
from tri_apsp.console.exit_status import BAD_INPUT, FAILED, INTERRUPTED
from tri_apsp.console.options import add_device, add_json
from tri_apsp.console.parser import Parser
from tri_apsp.semirings import DTYPES_BY_NAME, SIGNS
from tri_apsp.tune.sweep.plan import BUDGETS, ENERGY_BUDGETS, SAMPLERS
from tri_apsp.tuned.records import RECORDS

__all__ = ["build_parser"]

_DESCRIPTION = """\
Find the fastest configurations for this machine, and write them to tuned files,
which later solves use. Without options, all kernels of the GPU's best engine are
tuned, or those of the CPU if there is no GPU.
"""

_EPILOG = f"""\
The configuration in use stays unless another is faster by more than 2% and by
more than the noise. Ctrl-C or SIGTERM ends the search and keeps the results so
far; --resume continues it. Environment: TRI_APSP_CONFIG_DIR names the directory
of tuned files that is searched first and written to; TRI_APSP_TUNE sets what
happens if nothing was tuned for a solve: warn (default), auto, off or require;
with TRI_APSP_OBJECTIVE=energy, solves prefer entries for energy.

exit status:
    0  done
  {FAILED:3}  some task could not be tuned, --verify found an entry that is stale or
       failed, a size does not fit the memory, or the engine cannot run here
  {BAD_INPUT:3}  an argument breaks a rule, or a file or a database cannot be used
  {INTERRUPTED:3}  interrupted (Ctrl-C, SIGTERM)
"""


def build_parser(prog: str = "python -m tri_apsp.tune") -> Parser:
    """Return the parser; `prog` is the command that was typed."""
    parser = Parser(
        prog=prog,
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_tasks(parser)
    _add_settings(parser)
    _add_actions(parser)
    add_json(
        parser,
        "device, seconds, interrupted, files, results; or the output of the option given instead of tuning",
    )
    return parser


def _add_tasks(parser: Parser) -> None:
    what = parser.add_argument_group("what to tune")
    kernels = list(dict.fromkeys(kernel for _, kernel in RECORDS))
    what.add_argument(
        "--kernel",
        dest="kernels",
        nargs="+",
        choices=kernels,
        default=[],
        help="default: all of the engine",
    )
    what.add_argument(
        "--n",
        type=int,
        nargs="+",
        default=[],
        help="sizes, which must fit the memory; a kernel that a solve runs at a smaller size is tuned at that size, and "
        "batches that do not fit are skipped unless --kernel names them; default: those of the effort",
    )
    what.add_argument(
        "--dtype",
        dest="dtypes",
        nargs="+",
        choices=DTYPES_BY_NAME,
        default=[],
        help="default: those of the effort",
    )
    what.add_argument(
        "--sign",
        dest="signs",
        nargs="+",
        choices=SIGNS,
        default=[],
        help="signs of the weights; default: those of the effort",
    )
    add_device(what)
    what.add_argument(
        "--gpus",
        type=int,
        default=1,
        metavar="G",
        help="measure on G GPUs at the same time; default: 1",
    )


def _add_settings(parser: Parser) -> None:
    how = parser.add_argument_group("how")
    how.add_argument(
        "--objective",
        choices=tuned.OBJECTIVES,
        default=tuned.DEFAULT_OBJECTIVE,
        help="what to minimise: the time (default), or the energy per run, on an NVIDIA GPU; also the entries that --show and "
        "--verify take. Energy takes 1.5 s per configuration, so fewer are tried",
    )
    how.add_argument(
        "--effort",
        choices=list(BUDGETS),
        default="quick",
        help=f"quick (default): up to {BUDGETS['quick'].seconds:.0f} s per task, for energy "
        f"{ENERGY_BUDGETS['quick'].seconds:.0f} s; full: up to {BUDGETS['full'].seconds:.0f} s",
    )
    trials, energy = (
        ", ".join(f"{budget.trials} {effort}" for effort, budget in budgets.items())
        for budgets in (BUDGETS, ENERGY_BUDGETS)
    )
    how.add_argument(
        "--trials",
        type=int,
        metavar="T",
        help=f"at most T configurations per task; default: {trials}; for energy {energy}",
    )
    how.add_argument(
        "--time-budget",
        type=float,
        metavar="SECONDS",
        help="time for all tasks; default: the time of the effort for each task",
    )
    how.add_argument(
        "--sampler",
        choices=SAMPLERS,
        default="tpe",
        help="default: tpe; if there are at most --trials candidates, all are tried",
    )
    how.add_argument("--seed", type=int, default=0, help="seed of the sampler; default: 0")
    where = how.add_mutually_exclusive_group()
    where.add_argument(
        "--save-dir",
        type=Path,
        metavar="DIR",
        help="directory of tuned files, which solves find with TRI_APSP_CONFIG_DIR=DIR; default: this user's directory, which "
        "every solve searches and `python -m tri_apsp info` shows",
    )
    where.add_argument(
        "--ship",
        action="store_true",
        help="for maintainers: write to the tuning/ of the checkout that runs, as it is shipped",
    )
    how.add_argument(
        "--storage",
        metavar="URL",
        help="database for the trials, which machines with the same GPU may share, such as sqlite:///studies.db or "
        "postgresql+psycopg://user@host/name; default: a journal in this user's data directory",
    )
    how.add_argument(
        "--resume",
        action="store_true",
        help="continue the newest studies, also those of other machines",
    )
    how.add_argument("--force", action="store_true", help="replace tuned files that cannot be used")
    how.add_argument(
        "--report",
        type=Path,
        metavar="DIR",
        help="also write every trial, the machine and the versions there",
    )


def _add_actions(parser: Parser) -> None:
    instead = parser.add_argument_group("instead of tuning").add_mutually_exclusive_group()
    for name, text in (
        ("dry-run", "show the tasks, their files, and the sizes of their spaces"),
        ("list", "list the tuned files, and which of them are used here"),
        ("show", "show the configurations that are used here"),
        (
            "verify",
            "measure the saved configurations and the defaults again; each entry holds, is within noise, is stale (the default "
            "is better), or failed",
        ),
    ):
        instead.add_argument(
            f"--{name}", dest="action", action="store_const", const=name, help=text
        )
    for name, text in (
        ("export", "write what was tuned for this device to one file, to send in or copy"),
        ("import", "check such a file, and save its entries as tuned files"),
    ):
        instead.add_argument(
            f"--{name}", dest="action", action=_FileAction, const=name, metavar="FILE", help=text
        )


class _FileAction(argparse.Action):
    """Stores the name of an action, and the file that it takes."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option: str | None = None,
    ) -> None:
        namespace.action, namespace.file = self.const, Path(str(values))
