from pathlib import Path

from explorer_app.farm.folder_probe import FolderProbe, answered, probe_path


def test_a_worker_that_sees_the_folder_answers_and_nothing_stays(tmp_path: Path) -> None:
    probe = FolderProbe(tmp_path, "a1")
    with probe.placed():
        name = answered(tmp_path, "a1", probe.token)
        assert probe.is_answered(name)
    assert not list(tmp_path.iterdir())


def test_an_answer_that_cannot_be_removed_does_not_end_the_job(tmp_path: Path) -> None:
    probe = FolderProbe(tmp_path, "a1")
    with probe.placed():
        kept = Path(f"{probe_path(tmp_path, 'a1')}-1-ab")
        kept.mkdir()
    assert list(tmp_path.iterdir()) == [kept]


def test_another_folder_gives_no_answer(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    probe = FolderProbe(here, "a1")
    with probe.placed():
        assert answered(there, "a1", probe.token) == ""
        probe_path(there, "a1").write_text("another", encoding="ascii")
        assert answered(there, "a1", probe.token) == ""
    assert not list(here.iterdir())


def test_a_name_that_leads_elsewhere_or_a_wrong_answer_does_not_count(tmp_path: Path) -> None:
    probe = FolderProbe(tmp_path / "here", "a1")
    (tmp_path / "here").mkdir()
    (tmp_path / "answer").write_text(probe.token[::-1], encoding="ascii")
    assert not probe.is_answered("../answer")
    (tmp_path / "here" / "answer").write_text(probe.token, encoding="ascii")
    assert not probe.is_answered("answer")
