from pathlib import Path

from PIL import Image

from gpu_backend.training.world.sheet import main


def test_a_sheet_holds_the_requested_pictures(tmp_path: Path) -> None:
    path = tmp_path / "sheet.png"
    assert main(["--count", "3", "--resolution", "16", "--out", str(path)]) == 0
    with Image.open(path) as sheet:
        assert sheet.size == (48, 16)


def test_strips_have_a_row_for_each_factor(tmp_path: Path) -> None:
    path = tmp_path / "strips.png"
    main(["--count", "2", "--resolution", "16", "--strips", "season", "haze", "--out", str(path)])
    with Image.open(path) as sheet:
        assert sheet.size == (32, 32)
        rows = sheet.crop((0, 0, 16, 16)), sheet.crop((16, 0, 32, 16))
        assert rows[0].tobytes() != rows[1].tobytes()
