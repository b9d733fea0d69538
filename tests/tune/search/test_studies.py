"""Where trials are kept: a journal, a database on disk, a server; and what happens when it does not
work.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import filelock
import optuna
import pytest
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState
from tune.synthetic import DEFAULT, SPACE, Costs, everything

from tri_apsp.errors import InputError
from tri_apsp.tune.search import studies
from tri_apsp.tune.search.evaluated import SearchResult
from tri_apsp.tune.search.search import Search
from tri_apsp.tune.search.studies import journal_path, open_storage, open_study

pytestmark = pytest.mark.usefixtures("home")

SLUG = "a-gpu"


def some_trials(
    url: str | None,
    trials: int,
    *,
    resume: bool = True,
    before: Callable[[int], object] = lambda count: None,
) -> tuple[SearchResult, int]:
    """Search in one process; return its result, and the number of configurations that it evaluated
    itself.
    """
    costs = Costs(before=before)
    with open_storage(url, SLUG) as storage:
        study = open_study(storage, "product", resume=resume)
        result = Search(SPACE, everything(), study=study, default=DEFAULT, trials=trials).run(
            [costs]
        )
    return result, len(costs.calls)


def names(url: str | None) -> list[str]:
    with open_storage(url, SLUG) as storage:
        return sorted(optuna.get_all_study_names(storage))


@pytest.fixture(params=["journal", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str | None:
    return None if request.param == "journal" else f"sqlite:///{tmp_path / 'studies.db'}"


def test_a_resumed_study_continues(url: str | None) -> None:
    assert some_trials(url, 6)[1] == 6
    result, evaluated = some_trials(url, 14)
    assert (len(result.evaluated), evaluated) == (14, 8)
    assert result.evaluated[0].outcome.times is not None
    assert names(url) == ["product-1"]


def test_without_resume_another_study_begins_and_the_old_one_stays(url: str | None) -> None:
    some_trials(url, 6)
    assert some_trials(url, 5, resume=False)[1] == 5
    assert names(url) == ["product-1", "product-2"]
    assert some_trials(url, 7)[1] == 2  # the newest of them


class TestJournal:
    def test_remains_of_a_killed_process_are_repaired(self) -> None:
        """A killed process may leave a line cut short, and Optuna's lock."""
        some_trials(None, 4)
        path = journal_path(SLUG)
        path.write_bytes(path.read_bytes() + b'{"op_code":5,"trial')
        path.with_name(path.name + ".lock").touch()
        assert some_trials(None, 6)[1] == 2
        with open_storage(None, SLUG) as storage:
            (study,) = optuna.get_all_study_summaries(storage)
            states = [trial.state for trial in storage.get_all_trials(study._study_id)]
        assert states == [TrialState.COMPLETE] * 6

    def test_a_journal_is_written_once_per_trial(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A write may take milliseconds if the file system is slow."""
        written, append = list[dict[str, Any]](), JournalFileBackend.append_logs

        def count(self: JournalFileBackend, logs: list[dict[str, Any]]) -> None:
            written.extend(logs)
            append(self, logs)

        some_trials(None, 1)
        monkeypatch.setattr(JournalFileBackend, "append_logs", count)
        assert some_trials(None, 31)[1] == 30
        assert len(written) == 30

    def test_a_second_tuner_is_refused(self) -> None:
        with (
            open_storage(None, SLUG),
            pytest.raises(InputError, match=r"is locked by another; wait for it"),
        ):
            some_trials(None, 1)
        some_trials(None, 1)

    def test_the_lock_ends_with_the_process_that_had_it(self) -> None:
        script = "import filelock, sys, os; filelock.FileLock(sys.argv[1]).acquire(); os.kill(os.getpid(), 9)"
        path = journal_path(SLUG).with_suffix(".lock")
        path.parent.mkdir(parents=True)
        subprocess.run([sys.executable, "-c", script, path], check=False)
        assert path.exists()
        some_trials(None, 1)

    LINES = (
        b"\x00\xff\n",
        b"\n",
        b"{}",
        b"not json\nat all",
        b"garbage",
        b"123",
        b"[]",
        b"null",
        b'"x"',
        b'{"op_code": 99}',
    )

    @pytest.mark.parametrize("line", LINES)
    @pytest.mark.parametrize("place", ["alone", "last", "first"])
    def test_another_file_or_a_damaged_line_is_refused(self, line: bytes, place: str) -> None:
        path = journal_path(SLUG)
        if place != "alone":
            some_trials(None, 3)
        path.parent.mkdir(parents=True, exist_ok=True)
        known = path.read_bytes() if path.exists() else b""
        content = known + line + b"\n" if place == "last" else line + b"\n" + known
        path.write_bytes(content)
        with pytest.raises(
            InputError, match=r"must be one that Optuna wrote, but .* move it away\.$"
        ):
            some_trials(None, 1)
        assert path.read_bytes() == content

    def test_errors_of_others_are_left_alone(self) -> None:
        with pytest.raises(AssertionError, match="of a task"), open_storage(None, SLUG):
            raise AssertionError("of a task")

    def test_a_folder_in_place_of_the_journal_is_refused(self) -> None:
        journal_path(SLUG).mkdir(parents=True)
        with pytest.raises(InputError, match=r"must be readable, but .* is not \(Is a directory\)"):
            some_trials(None, 1)

    def test_a_file_in_place_of_the_folder_is_refused(self, home: Path) -> None:
        (home / "data").touch()
        with pytest.raises(InputError, match="must be writable"):
            some_trials(None, 1)

    def test_a_journal_without_rights_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(self: object, *_: object, **__: object) -> None:
            raise PermissionError(13, "Permission denied")  # a chmod does not stop root

        monkeypatch.setattr(filelock.FileLock, "acquire", refuse)
        with pytest.raises(
            InputError, match=r"must be writable, but .* is not \(Permission denied\)"
        ):
            some_trials(None, 1)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("studies", "must be the URL of a database"),
        ("nonsense://host/name", "must be the URL of a database"),
        (
            "postgresql+psycopg://tuner:secret@host:abc/name",
            "but is 'postgresql+psycopg://tuner:***@host:abc/name'; give such",
        ),
        (
            "postgresql+psycopg://tuner:s@cret@host:abc/name",
            "but is 'postgresql+psycopg://tuner:***@host:abc/name'; give such",
        ),
        ("sqlite:///studies.db?timeout=soon", "must be the URL of a database"),
        ("sqlite:////no/such/folder/studies.db", "unable to open database file"),
        ("postgresql+psycopg://tuner:secret@127.0.0.1:1/name", "does not"),
        ("mysql+no_such_driver://host/name", "must be the URL of a database"),
        (
            "oracle+cx_oracle://host/name",
            "needs the Python package cx_Oracle, which is not installed; pip install it.",
        ),
    ],
)
def test_a_url_that_does_not_answer(url: str, expected: str) -> None:
    if "psycopg" in url:
        pytest.importorskip("psycopg")
    with pytest.raises(InputError) as caught:
        some_trials(url, 1)
    message = str(caught.value)
    assert expected in message
    assert "secret" not in message
    assert "\n" not in message
    assert message.endswith(".")


@pytest.mark.parametrize(
    ("url", "limit"),
    [
        ("sqlite:///studies.db", {"timeout": 10}),
        ("postgresql+psycopg://host/name", {"connect_timeout": 10}),
        ("postgresql+psycopg2://host/name", {"connect_timeout": 10}),
        ("mysql://host/name", {"connect_timeout": 10}),
        ("mariadb+pymysql://host/name", {"connect_timeout": 10}),
        ("oracle+oracledb://host/name", {}),
        ("mssql+pyodbc://host/name", {}),
    ],
)
def test_drivers_receive_a_time_limit_under_their_name(
    monkeypatch: pytest.MonkeyPatch, url: str, limit: dict[str, int]
) -> None:
    made = MagicMock()
    monkeypatch.setattr(studies, "RDBStorage", made)
    with open_storage(url, SLUG):
        pass
    assert made.call_args.kwargs["engine_kwargs"]["connect_args"] == limit


@pytest.mark.parametrize("revision", ["v0.9.0.a", "v99.0.0.a"])
def test_a_database_of_another_version_of_optuna(tmp_path: Path, revision: str) -> None:
    path = tmp_path / "studies.db"
    url = f"sqlite:///{path}"
    some_trials(url, 1)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE alembic_version SET version_num = ?", (revision,))
    with pytest.raises(
        InputError,
        match=r"^--storage must .* tables of Optuna \d.* but those of sqlite:.* upgrade` if .*\.$",
    ):
        some_trials(url, 1)


def test_a_database_that_goes_away(tmp_path: Path) -> None:
    path = tmp_path / "studies.db"

    def lose_it() -> None:
        with open_storage(f"sqlite:///{path}", SLUG) as storage:
            study = open_study(storage, "product", resume=True)
            path.write_bytes(b"no database any more" * 1000)
            study.ask()

    with pytest.raises(
        InputError, match=r"must name a database that answers, but sqlite:///.* does not"
    ):
        lose_it()


@pytest.fixture
def server() -> Iterator[str]:
    """A PostgreSQL server of Debian's packages, in a folder and on a socket of its own."""
    psycopg = pytest.importorskip("psycopg", reason="needs psycopg")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not folders:
        pytest.skip("needs Debian's package postgresql")
    # It refuses to run as root, and its socket must have a short path.
    user = {"user": "nobody", "extra_groups": []} if os.getuid() == 0 else {}
    home = Path(tempfile.mkdtemp(prefix="tri_apsp-"))
    if user:
        shutil.chown(home, "nobody")
    data = home / "data"
    subprocess.run(
        [folders[-1] / "initdb", "-D", data, "-A", "trust", "-U", "tuner", "--no-sync"],
        check=True,
        capture_output=True,
        **user,
    )
    command = [folders[-1] / "postgres", "-D", data, "-k", home, "-h", "", "-F"]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **user
    ) as running:
        try:
            deadline = time.monotonic() + 30
            while True:  # its socket is there before it answers
                try:
                    psycopg.connect(host=str(home), user="tuner", dbname="postgres").close()
                    break
                except psycopg.OperationalError:
                    assert running.poll() is None
                    assert time.monotonic() < deadline
                    time.sleep(0.02)
            yield f"postgresql+psycopg://tuner@/postgres?host={home}"
        finally:
            running.kill()
    shutil.rmtree(home)


def test_postgresql_is_shared_by_two_machines(server: str) -> None:
    evaluated = list[int]()

    def meanwhile(count: int) -> None:
        if count == 3:
            evaluated.append(some_trials(server, 9)[1])

    result, own = some_trials(server, 12, before=meanwhile)
    assert len(result.evaluated) == 12
    assert evaluated == [7]  # all but the two that the first had told by then
    assert 5 <= own <= 6  # the other may have evaluated the same at the same time
    assert names(server) == ["product-1"]
