"""The storage of trials: Optuna's journal on this machine, or a database that several machines
share.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import optuna
import platformdirs
import sqlalchemy
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

from tri_apsp.errors import InputError


def journal_path(slug: str) -> Path:
    """Return the journal of the studies for the device that `slug` names."""
    return platformdirs.user_data_path("tri_apsp", appauthor=False) / "studies" / f"{slug}.log"


@contextmanager
def open_storage(url: str | None, slug: str) -> Iterator[BaseStorage]:
    """Open the storage of the studies for a `with`; an error of the storage inside it becomes an
    InputError of one sentence.

    Args:
        url: the URL of a database in the form of SQLAlchemy; None: the journal of this machine.
        slug: the slug of the device.

    Raises:
        InputError: it is no URL, its driver is missing, it does not answer, its tables are of
            another version of Optuna, or the journal cannot be used.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # else it logs each trial on stderr
    if url is None:
        yield _journal(journal_path(slug))
        return
    try:
        storage = RDBStorage(url, engine_kwargs={"pool_pre_ping": True})
    except (sqlalchemy.exc.ArgumentError, ImportError, RuntimeError, ValueError) as error:
        raise _refused(url, error) from None
    except sqlalchemy.exc.SQLAlchemyError as error:
        raise _refused(url, error) from None
    try:
        yield storage
    except (sqlalchemy.exc.SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        raise _refused(url, error) from None
    finally:
        storage.remove_session()
        storage.engine.dispose()


def _journal(path: Path) -> BaseStorage:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = JournalFileOpenLock(str(path))
        return JournalStorage(JournalFileBackend(str(path), lock_obj=lock))
    except OSError as error:
        raise InputError(
            f"the journal of studies must be readable and writable, but {path} is not "
            f"({error.strerror}); change its rights, or give another --storage."
        ) from None
    except Exception:  # Optuna checks no line, so a damaged one may raise any exception
        raise InputError(
            f"the journal of studies must be one that Optuna wrote, but {path} is not; "
            "move it away."
        ) from None


def _refused(url: str, error: Exception) -> InputError:
    shown = re.sub(r"(//[^:/@]*:).*@", r"\1***@", url)  # without its password
    reason = str(error.__cause__ or error).strip().splitlines()[0].rstrip(".")
    return InputError(
        f"--storage must be the URL of a database that Optuna can use, such as "
        f"sqlite:///studies.db, but {shown} is not ({type(error).__name__}: {reason}); "
        "correct it, or install its driver."
    )


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
