from pytestqt.qtbot import QtBot

from explorer_app.window.controls.share_bar import ShareBar


def test_a_share_fills_the_bar_and_an_unknown_one_has_no_end(qtbot: QtBot) -> None:
    bar = ShareBar("Progress of the search")
    qtbot.addWidget(bar)
    assert bar.accessibleName() == "Progress of the search"
    for share, value in ((0.0, 0), (0.25, 250), (1.0, 1000), (1.5, 1000)):
        bar.show_share(share)
        assert (bar.value(), bar.maximum()) == (value, 1000)
    bar.show_share(None)
    assert bar.maximum() == 0
    bar.show_share(0.5)
    assert (bar.value(), bar.maximum()) == (500, 1000)
