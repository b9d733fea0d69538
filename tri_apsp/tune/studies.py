"""The storage of trials: Optuna's journal on this machine."""

from pathlib import Path

import optuna
import platformdirs
from optuna.storages import BaseStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

from tri_apsp.errors import InputError


def journal_path(slug: str) -> Path:
    """Return the journal of the studies for the device that `slug` names."""
    return platformdirs.user_data_path("tri_apsp", appauthor=False) / "studies" / f"{slug}.log"


def open_storage(slug: str) -> BaseStorage:
    """Return the storage of the studies for a device.

    Raises:
        InputError: the journal cannot be used.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # else it logs each trial on stderr
    path = journal_path(slug)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = JournalFileOpenLock(str(path))
        return JournalStorage(JournalFileBackend(str(path), lock_obj=lock))
    except OSError as error:
        raise InputError(
            f"the journal of studies must be readable and writable, but {path} is not "
            f"({error.strerror}); change its rights."
        ) from None
    except Exception:  # Optuna checks no line, so a damaged one may raise any exception
        raise InputError(
            f"the journal of studies must be one that Optuna wrote, but {path} is not; "
            "move it away."
        ) from None


def open_study(storage: BaseStorage, name: str, *, resume: bool) -> optuna.Study:
    """Return a study to minimise milliseconds, whose name is `name` and a number.

    Args:
        storage: the storage that holds the study.
        name: readable words, and a hash of what the times depend on.
        resume: continue the newest study of that name, if there is one; else begin another, and
            leave the old ones.
    """
    names = optuna.get_all_study_names(storage)
    numbers = [int(known.rpartition("-")[2]) for known in names if known.startswith(f"{name}-")]
    newest = max(numbers, default=0)
    if resume and numbers:
        return optuna.load_study(storage=storage, study_name=f"{name}-{newest}")
    return optuna.create_study(storage=storage, study_name=f"{name}-{newest + 1}")
