from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from gpu_backend.training.directions.label_reader import fit_label_reader, train_label_reader
from gpu_backend.training.directions.labelled_pictures import LabelsError, read_labelled
from gpu_backend.training.quality.feature_network import FeatureNetwork, FeatureShape
from gpu_backend.training.quality.feature_training import FeatureTraining
from gpu_backend.training.quality.reading import FeatureReader

CPU = torch.device("cpu")
SHAPE = FeatureShape(side=8, widths=(8, 8), squeezed=4, features=8)


def picture(path: Path, grey: int, size: tuple[int, int] = (12, 8)) -> None:
    path.parent.mkdir(exist_ok=True, parents=True)
    Image.new("RGB", size, (grey, grey, grey)).save(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for index in range(30):
        dark = index % 2 == 0
        picture(tmp_path / ("dark" if dark else "bright") / f"{index}.png", 20 + index if dark else 200 + index)
    (tmp_path / "dark" / "notes.txt").write_text("no picture")
    return tmp_path


def test_of_two_subfolders_the_first_is_the_factor(folder: Path) -> None:
    labelled = read_labelled(folder, 8)
    assert labelled.names == ("bright",)
    assert labelled.pictures.shape == (30, 3, 8, 8)
    assert labelled.pictures.dtype == torch.uint8
    bright = labelled.pictures.float().mean(dim=(1, 2, 3)) > 128
    assert np.array_equal(labelled.values[:, 0], bright.numpy().astype(float))


@pytest.mark.parametrize(("labels", "factors"), [("01", ("0",)), ("012", ("0", "1", "2"))])
def test_subfolders_that_are_called_by_numbers_are_labels_too(
    tmp_path: Path, labels: str, factors: tuple[str, ...]
) -> None:
    for index in range(30):
        picture(tmp_path / labels[index % len(labels)] / f"{index}.png", index)
    labelled = read_labelled(tmp_path, 8)
    assert labelled.names == factors
    assert labelled.values.sum() == (15 if len(labels) == 2 else 30)


def test_a_table_may_hold_numbers_and_labels(folder: Path) -> None:
    lines = ["file,age,kind,same"]
    for index in range(30):
        inner = "dark" if index % 2 == 0 else "bright"
        lines.append(f"{inner}/{index}.png,{index * 1.5},{'abc'[index % 3]},7")
    (folder / "labels.csv").write_text("\n".join(lines))
    labelled = read_labelled(folder, 8)
    assert labelled.names == ("age", "kind a", "kind b", "kind c")
    assert labelled.values[:3, 0].tolist() == [0.0, 1.5, 3.0]
    assert labelled.values[:3, 1:].tolist() == np.eye(3).tolist()
    assert np.array_equal(read_labelled(folder / "labels.csv", 8).values, labelled.values)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "two columns"),
        ("file\na.png", "two columns"),
        ("file,a,a\n", "two columns"),
        ("file,\n", "two columns"),
        ("file,a\nx.png\n", "2 fields"),
        ("file,a\n" + "x.png,1\n" * 5, "At least 20"),
        ("file,a\n" + "x.png,1\n" * 30, "should differ"),
        ("file,a\n" + "".join(f"x.png,{index}\n" for index in range(30)), "cannot be read"),
        ("file,a\n" + "x.png,nan\n" * 30, "finite"),
        ("file,a\n" + "".join(f"x.png,label {index}\n" for index in range(40)), "at most 32"),
    ],
)
def test_impossible_settings_are_refused_with_a_sentence(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(LabelsError, match=words):
        read_labelled(tmp_path, 8)


def test_no_folder_and_a_file_that_is_no_picture_are_refused(folder: Path) -> None:
    with pytest.raises(LabelsError, match="neither"):
        read_labelled(folder / "missing", 8)
    (folder / "dark" / "0.png").write_bytes(b"no picture")
    with pytest.raises(LabelsError, match="cannot be read"):
        read_labelled(folder, 8)


def test_labels_are_read_by_a_network_trained_on_them(folder: Path) -> None:
    labelled = read_labelled(folder, 8)
    training = FeatureTraining(shape=SHAPE, steps=40, batch=16, rate=1e-2)
    read, skill = train_label_reader(labelled, training, CPU)
    assert skill["bright"] > 0.8
    told = read(np.stack([np.full((3, 8, 8), level, np.float32) for level in (-0.8, 0.7)]))
    assert told[1, 0] > told[0, 0] + 1.0


def test_labels_are_read_by_a_regression_on_features_that_are_there(folder: Path) -> None:
    torch.manual_seed(0)
    reader = FeatureReader(FeatureNetwork(("any",), SHAPE, torch.zeros(1), torch.ones(1)), CPU)
    read, skill = fit_label_reader(read_labelled(folder, 8), reader)
    assert skill["bright"] > 0.5
    told = read(np.stack([np.full((3, 8, 8), level, np.float32) for level in (-0.8, 0.7)]))
    assert told[1, 0] > told[0, 0] + 1.0


def test_grey_pictures_of_sixteen_bits_are_not_white(tmp_path: Path) -> None:
    for index in range(20):
        path = tmp_path / "ab"[index % 2] / f"{index}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(np.full((8, 8), 100 * 257, np.uint16)).save(path)
    assert read_labelled(tmp_path, 8).pictures.eq(100).all()
