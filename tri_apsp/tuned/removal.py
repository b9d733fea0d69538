"""Removing the tuned files of this machine."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path

from tri_apsp.device import describe, resolve
from tri_apsp.errors import InputError, TuningWarning
from tri_apsp.messages import warn_caller
from tri_apsp.semirings import DTYPES_BY_NAME
from tri_apsp.tuned.paths import save_directory, user_directory
from tri_apsp.tuned.reading import MEMORY, reload
from tri_apsp.tuned.records import KERNELS
from tri_apsp.tuned.store import path_of

__all__ = ["reset"]

_KERNEL_NAMES = tuple(dict.fromkeys(itertools.chain.from_iterable(KERNELS.values())))


def reset(
    *,
    device: str = "auto",
    engine: str | None = None,
    kernel: str | None = None,
    dtype: str | None = None,
    directory: Path | str | None = None,
) -> list[Path]:
    """Remove tuned files of this machine from the user's directory, and forget what was tuned in
    this process.

    Files in TRI_APSP_CONFIG_DIR, which several users may share, stay unless `directory` names that
    directory; if there are any, a TuningWarning is issued. Shipped files stay in use.

    Args:
        device: "auto", "cpu", "cuda" or "cuda:N": the device whose files are removed.
        engine: None: every engine.
        kernel: None: every kernel; see tri_apsp.tuned.KERNELS.
        dtype: such as "float32"; None: every dtype.
        directory: None for the user's directory.

    Returns:
        The paths removed.

    Raises:
        InputError: a name that does not exist, or a file that cannot be removed.
    """
    for given, known in ((engine, KERNELS), (kernel, _KERNEL_NAMES), (dtype, DTYPES_BY_NAME)):
        if given is not None and given not in known:
            raise InputError(
                f"reset takes one of {', '.join(known)}, but got {given!r}; choose one of these."
            )
    slug = describe(resolve(device)).slug
    names = list(
        itertools.product(
            KERNELS if engine is None else [engine],
            _KERNEL_NAMES if kernel is None else [kernel],
            DTYPES_BY_NAME if dtype is None else [dtype],
        )
    )
    removed = _present_files(names, slug, directory or user_directory())
    for path in removed:
        try:
            path.unlink()
        except OSError as error:
            raise InputError(
                f"{path} must be removable, but is not ({error.strerror}); change its rights."
            ) from None
    MEMORY.clear()
    reload()
    kept = [] if directory else _present_files(names, slug, save_directory())
    if kept:
        warn_caller(
            f"reset must be told to remove tuned files outside the user's directory, but {kept[0].parent}, which is "
            f"searched first, still has {len(kept)}; give directory={str(save_directory())!r} to remove them.",
            TuningWarning,
        )
    return removed


def _present_files(
    names: Iterable[tuple[str, str, str]], slug: str, directory: Path | str
) -> list[Path]:
    """Return the files of these (engine, kernel, dtype) that are there."""
    paths = (path_of(*each, slug, directory) for each in names)
    return [path for path in paths if path.exists()]
