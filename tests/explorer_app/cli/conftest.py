from pathlib import Path

import pytest

from explorer_app import assets
from explorer_app.cli.main import main
from gpu_backend import write_safetensors
from tests.helpers.command import Command
from tests.helpers.networks import make_stylegan2
from tests.helpers.stylegan3 import make_stylegan3


@pytest.fixture(scope="session")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with small networks: plain, other (other weights), labelled (three classes), alias-free (StyleGAN3)."""
    folder = tmp_path_factory.mktemp("networks")
    write_safetensors(make_stylegan2(seed=1), folder / "plain.safetensors")
    write_safetensors(make_stylegan2(seed=2), folder / "other.safetensors")
    write_safetensors(make_stylegan2(c_dim=3, seed=3), folder / "labelled.safetensors")
    write_safetensors(make_stylegan3(num_layers=4), folder / "alias-free.safetensors")
    return folder


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, networks: Path) -> Command:
    """Run a command line; the bundled model is the plain network."""
    monkeypatch.setattr(assets, "_PLACES", (networks / "none", networks / "bundled"))
    bundled = networks / "bundled" / "models" / "plain.safetensors"
    bundled.parent.mkdir(parents=True, exist_ok=True)
    if not bundled.exists():
        bundled.write_bytes((networks / "plain.safetensors").read_bytes())
    return Command(main, capsys)
