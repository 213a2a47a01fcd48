import copy
import json
import re
from pathlib import Path

import pytest
import safetensors.numpy
import torch

from gpu_backend.errors import LoomError, ModelFileError
from gpu_backend.training.quality.feature_file import KEY, read_features, write_features
from gpu_backend.training.quality.feature_network import FeatureNetwork

Trained = tuple[FeatureNetwork, dict[str, float]]


def test_a_network_read_again_says_the_same(trained: Trained, tmp_path: Path) -> None:
    network, skill = trained
    write_features(network, skill, tmp_path / "features.safetensors")
    read, read_skill = read_features(tmp_path / "features.safetensors")
    pictures = torch.rand(4, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.equal(read(pictures), network(pictures))
    assert read.names == network.names
    assert list(read_skill.items()) == list(skill.items()), "in the order of the outputs"
    assert torch.equal(read.deviation, network.deviation)


def test_another_file_is_refused_in_a_sentence(trained: Trained, tmp_path: Path) -> None:
    write_features(*trained, tmp_path / "whole")
    whole = (tmp_path / "whole").read_bytes()
    other = safetensors.numpy.save({"head.weight": trained[0].head.weight.detach().numpy()})
    huge = whole.replace(b'\\"side\\": 16', b'\\"side\\": 99')
    assert huge != whole
    for content in (b"", b"hello", whole[:-5], other, huge):
        (tmp_path / "bad").write_bytes(content)
        with pytest.raises(ModelFileError, match=r"^bad was not opened: expected .*\.$"):
            read_features(tmp_path / "bad")
    with pytest.raises(ModelFileError, match="there is no file of that name"):
        read_features(tmp_path / "missing")


def test_a_place_that_cannot_be_written_to_is_reported(trained: Trained, tmp_path: Path) -> None:
    with pytest.raises(LoomError, match="was not written"):
        write_features(*trained, tmp_path / "none" / "x")


def test_a_network_that_reading_would_refuse_does_not_replace_the_older_file(trained: Trained, tmp_path: Path) -> None:
    network, skill = trained
    path = tmp_path / "features.safetensors"
    write_features(network, skill, path)
    before = path.read_bytes()
    broken = copy.deepcopy(network)
    with torch.no_grad():
        broken.head.weight[0, 0] = torch.nan
    with pytest.raises(ModelFileError, match=r"^features.safetensors was not written: expected finite numbers"):
        write_features(broken, skill, path)
    with pytest.raises(ModelFileError, match=r"^features.safetensors was not written: expected a network"):
        write_features(network, {}, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("widths", ["[1, 1]", "[1e999, 16]"])
def test_sizes_that_no_network_has_are_refused_in_a_sentence(widths: str, trained: Trained, tmp_path: Path) -> None:
    write_features(*trained, tmp_path / "bad")
    content = (tmp_path / "bad").read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header["__metadata__"][KEY] = re.sub(r'"widths": \[[^]]*\]', f'"widths": {widths}', header["__metadata__"][KEY])
    text = json.dumps(header).encode()
    (tmp_path / "bad").write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])
    with pytest.raises(ModelFileError, match=r"^bad was not opened: expected .*\.$"):
        read_features(tmp_path / "bad")
