"""The storage of trials: Optuna's journal on this machine, or a database that several machines
share.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock
import optuna
import platformdirs
import sqlalchemy
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

from tri_apsp.errors import InputError

__all__ = ["journal_path", "open_storage", "open_study"]

# Seconds to wait for a database, and the option of common drivers for it. A driver refuses an
# option that it does not know.
_TIMEOUT = 10
_TIMEOUT_OPTIONS = {"pysqlite": "timeout"} | dict.fromkeys(
    ("psycopg", "psycopg2", "pymysql", "mysqldb"), "connect_timeout"
)


def journal_path(slug: str) -> Path:
    """Return the journal of the studies for the device that `slug` names."""
    return platformdirs.user_data_path("tri_apsp", appauthor=False) / "studies" / f"{slug}.log"


@contextmanager
def open_storage(url: str | None, slug: str) -> Iterator[BaseStorage]:
    """Open the storage of the studies for a `with`; an error of the storage inside it becomes an
    InputError of one sentence.

    Args:
        url: the URL of a database in the form of SQLAlchemy; None: the journal of this machine,
            which is then locked.
        slug: the slug of the device.

    Raises:
        InputError: it is no URL, its driver is missing, it does not answer, its tables are of
            another version of Optuna, or the journal is locked, unreadable or damaged.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # else it logs each trial on stderr
    if url is None:
        with _journal(journal_path(slug)) as storage:
            yield storage
        return
    shown = _shown(url)
    with _answering(shown):
        storage = _database(url, shown)
        try:
            yield storage
        finally:
            storage.remove_session()
            storage.engine.dispose()


@contextmanager
def _journal(path: Path) -> Iterator[BaseStorage]:
    remedy = "make it readable and writable, or give another --storage."
    lock = filelock.FileLock(path.with_suffix(".lock"), timeout=0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except filelock.Timeout:
        raise InputError(
            f"one tuner at a time must use a journal of studies, but {path} is locked by another; wait for it, or give another "
            "--storage."
        ) from None
    except OSError as error:
        raise InputError(
            f"the journal of studies must be writable, but {path} is not ({error.strerror}); {remedy}"
        ) from None
    try:
        yield _read(path)
    except OSError as error:
        if error.filename != str(path):
            raise
        raise InputError(
            f"the journal of studies must be readable, but {path} is not ({error.strerror}); {remedy}"
        ) from None
    finally:
        lock.release()


def _read(path: Path) -> JournalStorage:
    last = _repair(path)
    try:
        if last is not None:
            json.loads(
                last
            )  # Optuna waits for the rest of a damaged last line, and reports it only once another line follows
        return JournalStorage(
            JournalFileBackend(str(path), lock_obj=JournalFileOpenLock(str(path)))
        )
    except OSError:
        raise
    except Exception:  # Optuna checks no line, so a damaged one may raise any exception
        raise InputError(
            f"the journal of studies must be one that Optuna wrote, but {path} is not; move it away."
        ) from None


def _repair(path: Path) -> bytes | None:
    """Remove what a killed process left: Optuna's lock, and a last line cut short, to which Optuna
    would append.

    Returns:
        The last line that is left; None if there is none.
    """
    path.with_name(f"{path.name}.lock").unlink(missing_ok=True)
    if not path.exists():
        return None
    with path.open("rb+") as file:
        lines, end, _ = file.read().rpartition(b"\n")
        file.truncate(len(lines + end))
    return lines.rpartition(b"\n")[2] if end else None


def _database(url: str, shown: str) -> RDBStorage:
    try:
        parsed = sqlalchemy.engine.make_url(url)
        option = _TIMEOUT_OPTIONS.get(parsed.get_driver_name())
        timeout = {} if option is None else {option: _TIMEOUT}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # experimental drivers, advice on SQLite
            return RDBStorage(url, engine_kwargs={"connect_args": timeout, "pool_pre_ping": True})
    except (sqlalchemy.exc.ArgumentError, ValueError):  # the latter of a port that is no number
        raise InputError(
            f"--storage must be the URL of a database, as sqlite:///studies.db or postgresql+psycopg://user@host/name, but is "
            f"{shown!r}; give such a URL."
        ) from None
    except ImportError as error:
        missing = getattr(error.__cause__, "name", None) or error.name or parsed.get_driver_name()
        raise InputError(
            f"--storage {shown} needs the Python package {missing}, which is not installed; pip install it."
        ) from None
    except RuntimeError as error:
        if "table schema" not in str(error):
            raise
        raise InputError(
            f"--storage must name a database with the tables of Optuna {optuna.__version__}, but those of {shown} are of "
            "another version; give another database, or run `optuna storage upgrade` if they are older."
        ) from None


def _shown(url: str) -> str:
    """Return `url` without its password."""
    try:
        return sqlalchemy.engine.make_url(url).render_as_string(hide_password=True)
    except (sqlalchemy.exc.ArgumentError, ValueError):
        return re.sub(r"(//[^:/]*:).*@", r"\1***@", url)


@contextmanager
def _answering(shown: str) -> Iterator[None]:
    try:
        yield
    except (sqlalchemy.exc.SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        cause = (
            error.__cause__ if isinstance(error, optuna.exceptions.StorageInternalError) else error
        )
        said = (
            str(getattr(cause, "orig", None) or cause or error).strip().splitlines()[0].rstrip(".")
        )
        raise InputError(
            f"--storage must name a database that answers, but {shown} does not ({said}); check the URL."
        ) from None


def open_study(storage: BaseStorage, name: str, *, resume: bool) -> optuna.Study:
    """Return a study to minimise the cost, milliseconds or joules, whose name is `name` and a
    number.

    Args:
        storage: the storage that holds the study.
        name: readable words, and a hash of what the times depend on.
        resume: continue the newest study of that name, if there is one; else begin another, and
            leave the old ones.
    """
    names = optuna.get_all_study_names(storage)
    numbers = [
        int(known.removeprefix(f"{name}-")) for known in names if known.startswith(f"{name}-")
    ]
    newest = max(numbers, default=0)
    if not (resume and numbers):
        return optuna.create_study(
            storage=storage, study_name=f"{name}-{newest + 1}", direction="minimize"
        )
    return optuna.load_study(storage=storage, study_name=f"{name}-{newest}")
