"""The storage of trials: it is found again, or refused in one sentence."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import optuna
import pytest

from tri_apsp.errors import InputError
from tri_apsp.tune.studies import journal_path, open_storage, open_study

pytestmark = pytest.mark.usefixtures("home")


@pytest.mark.parametrize("database", [False, True])
def test_a_study_is_resumed_or_another_one_begins(tmp_path: Path, database: bool) -> None:
    url = f"sqlite:///{tmp_path / 'studies.db'}" if database else None
    counts = []
    for resume in (False, True, False, True):
        with open_storage(url, "slug") as storage:
            study = open_study(storage, "a-study", resume=resume)
            study.enqueue_trial({"x": 1})
            study.tell(study.ask({"x": optuna.distributions.CategoricalDistribution((1, 2))}), 3.0)
            counts.append((study.study_name, len(study.trials)))
    assert counts == [("a-study-1", 1), ("a-study-1", 2), ("a-study-2", 1), ("a-study-2", 2)]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("studies", "ArgumentError"),
        ("sqlite:////no/such/x.db", "unable to open"),
        ("nonsense://user:secret@host/name", "nonsense"),
        ("postgresql+psycopg://user:secret@localhost:1/name", ""),
    ],
)
def test_a_database_that_cannot_be_used_is_refused_without_its_password(
    url: str, expected: str
) -> None:
    with (
        pytest.raises(InputError, match="--storage must be the URL") as caught,
        open_storage(url, "slug"),
    ):
        pass
    assert expected in str(caught.value)
    assert "secret" not in str(caught.value)
    assert re.fullmatch(r"[^\n]*\.", str(caught.value))


def test_a_database_that_goes_away_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "studies.db"

    def use() -> None:
        with open_storage(f"sqlite:///{path}", "slug") as storage:
            sqlite3.connect(path).execute("DROP TABLE studies")
            open_study(storage, "a-study", resume=False)

    with pytest.raises(InputError, match="no such table"):
        use()


@pytest.mark.parametrize("content", [None, "no journal\nat all\n"])
def test_a_journal_that_cannot_be_used_is_refused(content: str | None) -> None:
    path = journal_path("slug")
    path.parent.mkdir(parents=True)
    if content is None:
        path.mkdir()
    else:
        path.write_text(content)
    message = f"the journal of studies must be .* {path} is not"
    with pytest.raises(InputError, match=message), open_storage(None, "slug"):
        pass
