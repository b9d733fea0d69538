"""The tuner: finds the fastest configurations for this machine, and writes them to files that later
solves read.

`tune()` is `python -m tri_apsp.tune` as a function; `tune_for()` tunes what one call runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tri_apsp.device import Devices
    from tri_apsp.semirings import Sign
    from tri_apsp.tune.call import TunedCall
    from tri_apsp.tune.outcome import TuningResult

__all__ = ["tune", "tune_for"]


def tune(
    kernels: Sequence[str] = (),
    n: Sequence[int] = (),
    dtypes: Sequence[str] = (),
    signs: Sequence[Sign] = (),
    *,
    engine: str | None = None,
    device: Devices = "auto",
    effort: str = "quick",
    trials: int | None = None,
    time_budget: float | None = None,
    seed: int = 0,
    save_dir: Path | str | None = None,
    resume: bool = False,
    force: bool = False,
    storage: Path | str | None = None,
    progress: bool = False,
) -> TuningResult:
    """Search for the fastest configurations, and write them to tuned files, which later solves use.

    Each worker process imports the script that calls this, so the call must be under `if __name__
    == "__main__":`.

    Args:
        kernels: names of tri_apsp.tuned.KERNELS[engine]; empty: all, each with the winners of those
            before it.
        n: sizes, which must fit the memory. A kernel that such a solve runs at a smaller size is
            tuned at that size; batches that do not fit are skipped. Empty: those sizes of the
            effort that fit.
        dtypes: names such as "float32"; empty: those of the effort.
        signs: signs of the weights, "nonnegative" or "any"; empty: those of the effort.
        engine: "cpu", "nvidia" or "portable"; None: the best that runs on the device.
        device: "auto", "cpu", "cuda" or "cuda:N"; or a list of GPUs, or "all": those of one model
            share the trials of each task, and models are tuned one after another.
        effort: "quick", up to 45 s per task, or "full", up to 10 minutes.
        trials: the largest number of configurations per task; None: that of the effort, 300 or 400.
        time_budget: seconds for all tasks together; None: the seconds of the effort for each task.
        seed: the seed of the sampler.
        save_dir: directory of tuned files; None: tri_apsp.tuned.save_directory().
        resume: continue an earlier call that was interrupted; tasks that it finished are left out,
            if `effort`, `trials` and `time_budget` are the same.
        force: replace tuned files that cannot be used.
        storage: a journal file, or the URL of a database that Optuna takes, such as
            "sqlite:///searches.db"; calls on several hosts share the searches in it. None: the
            journal of this machine.
        progress: show progress on stderr.

    Returns:
        One result per task, in the order in which they ran.

    Raises:
        InputError: an argument breaks a rule, or the storage or the tuned files cannot be written.
        TooLargeError: a size does not fit the memory.
        EngineError: the engine cannot run on the device, or no task could be tuned.

    Cost:
        About the seconds of the effort per task. On the device of the tasks, five matrices per
        graph; nothing else should run there meanwhile.

    Source:
        Bergstra et al., Algorithms for Hyper-Parameter Optimization, NeurIPS 2011: the
        tree-structured Parzen estimator of Optuna, which proposes configurations.

    Examples:
        >>> from tri_apsp.tune import tune
        >>> if __name__ == "__main__":  # doctest: +SKIP
        ...     found = tune(["product"], n=[4096], dtypes=["float32"])
        ...     for result in found.results:
        ...         print(result.task, result.winner or result.error)
        ...     print(found.files)
    """
    # Imported here, since a worker imports this package too but needs none of these modules.
    from tri_apsp.tune.run import run_plans
    from tri_apsp.tune.tasks import Settings, plans

    planned = plans(
        Settings(
            kernels,
            n,
            dtypes,
            signs,
            engine,
            device,
            effort,
            trials,
            time_budget,
            seed,
            None if save_dir is None else Path(save_dir),
            resume,
            force,
            None if storage is None else str(storage),
        )
    )
    return run_plans(planned, shown=progress)


def tune_for(
    call: Callable[[], object],
    *,
    time_budget: float = 60.0,
    save_dir: Path | str | None = None,
    force: bool = False,
    progress: bool = True,
) -> TunedCall:
    """Tune the kernels that one call runs, at its sizes, batch, dtype and sign, and no others;
    print its time before and after.

    The call runs some times here. Each worker process imports the script that calls this, so the
    call of this function must be under `if __name__ == "__main__":`.

    Args:
        call: a function without arguments that calls this package, such as `lambda:
            tri_apsp.shortest_paths(weights, predecessors=True)`: a solve, a batch, a product, or
            queries of a prepared graph on a GPU.
        time_budget: seconds for everything.
        save_dir: directory of tuned files; None: tri_apsp.tuned.save_directory().
        force: replace tuned files that cannot be used.
        progress: show progress on stderr, and print the times before and after.

    Returns:
        The times before and after, and what was tuned.

    Raises:
        InputError: the call runs nothing that can be tuned; the tuned files cannot be written.
        InputTypeError: `call` is no function.
        EngineError: none of its kernels could be tuned.

    Cost:
        `time_budget`, shared equally by the kernels; memory as for `tune`.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> from tri_apsp.tune import tune_for
        >>> weights = torch.rand(2000, 2000)
        >>> if __name__ == "__main__":  # doctest: +SKIP
        ...     found = tune_for(lambda: tri_apsp.shortest_paths(weights))
        ...     print(found.before.p50_ms, found.after.p50_ms)
    """
    # Imported here, as in `tune`.
    from tri_apsp.tune.call import tune_call
    from tri_apsp.tune.tasks import Settings

    settings = Settings(
        time_budget=time_budget, save_dir=None if save_dir is None else Path(save_dir), force=force
    )
    found = tune_call(call, settings, shown=progress)
    if progress:
        print(found)
    return found
