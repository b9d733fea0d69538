"""The storage of trials: it is found again, or refused in one sentence."""

from pathlib import Path

import optuna
import pytest

from tri_apsp.errors import InputError
from tri_apsp.tune import search
from tri_apsp.tune.search import journal_path, open_storage, open_study

pytestmark = pytest.mark.usefixtures("home")


def test_a_study_is_resumed_or_another_one_begins() -> None:
    counts = []
    for resume in (False, True, False, True):
        study = open_study(open_storage(str(journal_path("slug"))), "a-study", resume=resume)
        study.tell(study.ask({"x": optuna.distributions.CategoricalDistribution((1, 2))}), 3.0)
        counts.append((study.study_name, len(study.trials)))
    assert counts == [("a-study-1", 1), ("a-study-1", 2), ("a-study-2", 1), ("a-study-2", 2)]


@pytest.mark.parametrize("content", [None, "no journal\nat all\n"])
def test_a_journal_that_cannot_be_used_is_refused(content: str | None) -> None:
    path = journal_path("slug")
    path.parent.mkdir(parents=True)
    if content is None:
        path.mkdir()
    else:
        path.write_text(content)
    with pytest.raises(InputError, match=f"the journal of searches must be .* {path} is not"):
        open_storage(str(path))


@pytest.mark.parametrize("url", ["FOLDER/new/searches.log", "sqlite:///FOLDER/searches.db"])
def test_hosts_that_share_a_storage_join_the_study_that_is_not_finished(
    tmp_path: Path, url: str
) -> None:
    def joined(resume: bool = False) -> optuna.Study:
        storage = open_storage(url.replace("FOLDER", str(tmp_path)))
        return open_study(storage, "a-study", resume=resume, shared=True)

    first = joined()
    first.tell(first.ask({"x": optuna.distributions.CategoricalDistribution((1, 2))}), 3.0)
    second = joined()
    assert (second.study_name, len(second.trials)) == ("a-study-1", 1)
    second.set_user_attr("finished", True)
    assert joined(resume=True).study_name == "a-study-1"
    assert joined().study_name == "a-study-2"


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("nothing://user:secret@host/name", "of the nothing URL is not .*nothing"),
        ("sqlite:////no/such/folder/searches.db", "of the sqlite URL is not .*unable to open"),
        ("://", "of the  URL is not"),
    ],
)
def test_a_database_that_cannot_be_used_is_refused(url: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        open_storage(url)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("package", ["sqlalchemy", "psycopg2"])
def test_the_package_that_a_database_needs_is_named(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    def missing(url: str) -> None:
        raise ImportError("Optuna's own") from ModuleNotFoundError(name=package)

    monkeypatch.setattr(search, "RDBStorage", missing)
    with pytest.raises(
        InputError, match=f"postgresql needs {package}, .* run pip install {package}, or"
    ):
        open_storage("postgresql://host/name")
