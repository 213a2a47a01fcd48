"""Files made to hurt: each gets one sentence, nothing in it runs, and little memory is taken."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_backend import ModelFileError, read_model
from tests.helpers.pickle_bombs import BOMBS
from tests.helpers.sentences import assert_one_sentence

FOLDER = Path(__file__).parents[2] / "data" / "hostile"
MANIFEST: list[dict[str, Any]] = json.loads((FOLDER / "manifest.json").read_text())
ROSINALITY = ("base_ok_rosinality.pt", "base_ok_rosinality_legacy.pt")
SAME_AS_BASE = [entry["file"] for entry in MANIFEST if entry["expect"] == "load_same_as_base"]
REFUSED = [
    entry["file"]
    for entry in MANIFEST
    if entry["expect"] in ("refuse", "refuse_or_flag", "refuse_or_load_same_as_base")
]
FUNCTIONS = ("system", "eval", "exec", "Popen", "getattr", "load", "_load_local", "memmap", "open", "os.system")
ASKED = [
    (entry["file"], entry["globals_outer"])
    for entry in MANIFEST
    if entry["file"] in REFUSED
    and not entry["file"].startswith("i06")
    and any(name.split(" ")[-1] in FUNCTIONS for name in entry["globals_outer"])
]


def test_every_file_of_the_folder_has_an_expectation() -> None:
    assert {path.name for path in FOLDER.glob("*.p*")} == {entry["file"] for entry in MANIFEST}
    assert len(REFUSED) + len(SAME_AS_BASE) + len(ROSINALITY) + 1 == len(MANIFEST)


@pytest.mark.parametrize("name", REFUSED)
def test_a_hostile_file_is_refused_with_one_sentence(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelFileError) as caught:
        read_model(FOLDER / name)
    assert_one_sentence(caught.value, name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "calls"), ASKED)
def test_a_file_that_asks_for_a_function_is_refused_by_its_name(name: str, calls: list[str]) -> None:
    with pytest.raises(ModelFileError) as caught:
        read_model(FOLDER / name)
    assert any(item in caught.value.sentence for item in calls)
    assert "nothing was run" in caught.value.sentence


@pytest.mark.parametrize("name", SAME_AS_BASE)
def test_source_text_in_a_file_is_data(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    base, model = read_model(FOLDER / "base_ok.pkl"), read_model(FOLDER / name)
    assert model.spec == base.spec
    for key, array in base.weights.items():
        np.testing.assert_array_equal(model.weights[key], array)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("c06_storage_data_short.pkl", "1024 elements"),
        ("d05_bytes8_2e60.pkl", "1152921504606846976 bytes"),
        ("d09_deep_nesting.pkl", "nested"),
        ("d10_zip_deflate_256MiB.pt", "compressed"),
        ("e03_html_error_page.pkl", "web page"),
        ("e04_git_lfs_pointer.pkl", "git lfs pull"),
        ("f04_G_ema_is_discriminator.pkl", "Discriminator"),
        ("g01_nan_conv_weight.pkl", "synthesis.b8.conv0.weight"),
        ("g03_nan_w_avg.pkl", "mapping.w_avg"),
        ("h01_conv_out_channels.pkl", "(5, 8, 3, 3)"),
        ("h04_missing_weight.pkl", "synthesis.b8.conv1.weight is missing"),
        ("h05_missing_block.pkl", "the block of 8 is missing"),
        ("h07_weight_int64.pkl", "i8"),
        ("i05_zip_torchscript.pt", "TorchScript"),
        ("f05_other_model.pt", "other tensors ('conv1.weight', 'fc.bias')"),
        ("f06_pt_without_g_ema.pt", "only g, as it was in training"),
        ("f07_tf_two_tuple.pkl", "there are 2 values"),
        ("g05_nan.pt", "convs.0.conv.weight"),
        ("h11_shape.pt", "(8, 8, 3, 3)"),
        ("h12_missing.pt", "convs.1.conv.weight is missing"),
        ("i07_namespace_args.pt", "os system"),
    ],
)
def test_the_sentence_says_what_is_wrong(name: str, part: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        read_model(FOLDER / name)
    assert_one_sentence(caught.value, part)


WARM_UP = ("base_ok.pkl", "a01_os_system_stack_global.pkl", *ROSINALITY)
"""Read before anything is measured: what is imported late has then been imported."""

_GUARDED = """
import os, resource, signal, sys
from pathlib import Path
from gpu_backend import LoomError, quick_dataclass, read_model
folder = Path(sys.argv[1])
for name in sys.argv[2:]:
    try:
        read_model(folder / name)
    except LoomError:
        pass

FORBIDDEN = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.", "exec", "compile", "import", "socket.",
             "pickle.", "ctypes.", "os.remove", "os.rename", "os.mkdir", "shutil.", "marshal.")

def guard(event, arguments):
    if event in ("compile", "exec") and sys._getframe(1).f_code is quick_dataclass._compiled.__code__:
        return  # a method of a class of ours, called for the first time
    if event.startswith(FORBIDDEN):
        print("FORBIDDEN", event, arguments, flush=True)
        os._exit(3)
    if event == "open" and Path(str(arguments[0])).parent != folder:
        print("FORBIDDEN", event, arguments, flush=True)
        os._exit(3)

pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + (200 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
sys.addaudithook(guard)
loaded = 0
for path in sorted(folder.glob("*.p*")):
    print(path.name, flush=True)  # the last name printed is that of the file that ended the process
    signal.setitimer(signal.ITIMER_PROF, 20.0)  # seconds of CPU time; then SIGPROF ends it
    try:
        read_model(path)
        loaded += 1
    except LoomError as error:
        if "expected memory" in error.sentence:
            print("MEMORY", flush=True)
            os._exit(4)
print("loaded", loaded, flush=True)
os._exit(0)
"""
_MEASURED = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="this system has no /proc to measure memory with"
)


def read_guarded(folder: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Read every file of a folder where running anything, 200 MB of memory or endless work end the process."""
    return subprocess.run(
        [sys.executable, "-c", _GUARDED, str(folder), *WARM_UP],
        cwd=cwd,
        env={"PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        timeout=30 * len(list(folder.iterdir())),
        check=False,
    )


@_MEASURED
def test_the_whole_folder_runs_nothing_and_takes_at_most_200_mb_a_file_and_ends(tmp_path: Path) -> None:
    result = read_guarded(FOLDER, tmp_path)
    assert (result.returncode, result.stdout.splitlines()[-1]) == (
        0,
        f"loaded {len(SAME_AS_BASE) + len(ROSINALITY) + 1}",
    ), result.stdout
    assert list(tmp_path.iterdir()) == []


@_MEASURED
def test_files_that_ask_for_much_take_at_most_200_mb_and_end(tmp_path: Path) -> None:
    bombs, empty = tmp_path / "bombs", tmp_path / "empty"
    bombs.mkdir()
    empty.mkdir()
    for name in WARM_UP:
        shutil.copy(FOLDER / name, bombs)
    for bomb in BOMBS:
        (bombs / f"{bomb.__name__}.pkl").write_bytes(bomb())
    result = read_guarded(bombs, empty)
    assert (result.returncode, result.stdout.splitlines()[-1]) == (0, f"loaded {len(ROSINALITY) + 1}"), result.stdout
    assert list(empty.iterdir()) == []
