"""The storage of trials: it is found again, or refused in one sentence."""

import optuna
import pytest

from tri_apsp.errors import InputError
from tri_apsp.tune.search import journal_path, open_journal, open_study

pytestmark = pytest.mark.usefixtures("home")


def test_a_study_is_resumed_or_another_one_begins() -> None:
    counts = []
    for resume in (False, True, False, True):
        study = open_study(open_journal(journal_path("slug")), "a-study", resume=resume)
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
        open_journal(journal_path("slug"))
