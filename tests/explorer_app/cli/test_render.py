from contextlib import closing
from fractions import Fraction
from pathlib import Path

import platformdirs
import pytest
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile

from explorer_app.cli.arguments import frame_rate
from explorer_app.exporting.picture import read_picture
from explorer_app.session.edits import GoToSeed
from explorer_app.session.session import ModelReference, Position, Session, Slider
from explorer_app.session.storage import save_session
from gpu_backend import Noise, Point, Tap, Transform, Truncation, inspect_model, open_renderer
from tests.helpers.command import Command
from tests.helpers.stylegan1 import make_stylegan1
from tests.helpers.stylegan1_file import write_stylegan1


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_that_cannot_be_written_is_refused_with_the_name_of_the_first_picture(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"")
    for words, name in (
        (("--seeds", "7-9", "--format", "jpeg"), "seed0007.jpg"),
        (("--from", tmp_path / "mine.loom"), "mine.png"),
    ):
        assert f"{name} cannot be written" in command("render", *words, "--outdir", tmp_path / "file").sentence


def test_the_working_folder_is_named_so_that_no_two_full_stops_meet(
    command: Command, networks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("render", "--network", networks / "plain.safetensors", "--seeds", "0", "--outdir", ".")
    assert command(*words).err.endswith("1 picture is in ./.\n")
    assert " frames are in ./, described by" in command(*words, "--path", "linear", "--frames", "2", "--loop").err
    outcome = command(*words, "--name", "one", "--path", "linear", "--frames", "2")
    assert outcome.err.endswith("1 frame is in ./, described by one.manifest.json.\n")


def test_seeds_become_pictures_named_after_them(command: Command, networks: Path, tmp_path: Path) -> None:
    network = networks / "plain.safetensors"
    outcome = command("render", "--network", network, "--seeds", "0,12345,4-6", "--trunc", "0.7", "--outdir", tmp_path)
    assert (outcome.status, outcome.out) == (0, "")
    assert outcome.err.endswith(f"5 pictures are in {tmp_path}.\n")
    assert names(tmp_path) == ["seed0000.png", "seed0004.png", "seed0005.png", "seed0006.png", "seed12345.png"]
    document = read_picture(tmp_path / "seed0004.png")
    assert document.request.blend[0][0].latent.point == Point(((4, 1.0),))
    assert document.request.blend[0][0].truncation == Truncation(0.7)
    assert document.session is not None
    assert document.session.position == Position(4.0, 0.0)
    assert str(network.parent).encode() not in (tmp_path / "seed0004.png").read_bytes()
    with Image.open(tmp_path / "seed0004.png") as image, closing(open_renderer(network)) as renderer:
        assert image.tobytes() == renderer.render(document.request).to_rgb().tobytes()


@pytest.mark.parametrize(
    ("name", "ending"), [("png16", ".png"), ("jpeg", ".jpg"), ("webp", ".webp"), ("tiff", ".tif"), ("exr", ".exr")]
)
def test_pictures_of_any_format_hold_their_recipe(
    command: Command, networks: Path, tmp_path: Path, name: str, ending: str
) -> None:
    words = ("render", "--network", networks / "plain.safetensors", "--outdir", tmp_path, "--format", name)
    assert command(*words, "--seeds", "3,4", "--jobs", "2").status == 0
    assert names(tmp_path) == [f"seed0003{ending}", f"seed0004{ending}"]
    document = read_picture(tmp_path / f"seed0004{ending}")
    assert document.request.blend[0][0].latent.point == Point(((4, 1.0),))
    again = ("--from", tmp_path / f"seed0004{ending}", "--outdir", tmp_path / "again", "--format", name)
    assert command("render", "--network", networks / "plain.safetensors", *again).status == 0
    copy = (tmp_path / "again" / f"seed0004{ending}").read_bytes()
    assert copy == (tmp_path / f"seed0004{ending}").read_bytes()


def test_a_size_and_a_quality_reach_the_files(command: Command, networks: Path, tmp_path: Path) -> None:
    words = (
        "render",
        "--network",
        networks / "plain.safetensors",
        "--seeds",
        "3,4",
        "--format",
        "jpeg",
        "--size",
        "40x20",
    )
    assert (
        command(*words, "--quality", "95", "--path", "linear", "--frames", "2", "--outdir", tmp_path / "a").status == 0
    )
    assert command(*words, "--quality", "20", "--outdir", tmp_path / "b").status == 0
    with Image.open(tmp_path / "a" / "path_00000.jpg") as good, Image.open(tmp_path / "b" / "seed0003.jpg") as poor:
        assert good.size == poor.size == (40, 20)
        assert isinstance(good, JpegImageFile)
        assert isinstance(poor, JpegImageFile)
        assert max(good.quantization[0]) < max(poor.quantization[0])
    goes_on = command("render", "--resume", tmp_path / "a" / "path.manifest.json", "--format", "png")
    assert "so --format cannot be given with it" in goes_on.err


def test_a_path_becomes_an_animation_and_the_same_command_changes_nothing(
    command: Command, networks: Path, tmp_path: Path
) -> None:
    words = (
        "render",
        "--network",
        networks / "plain.safetensors",
        "--seeds",
        "3,4",
        "--path",
        "linear",
        "--frames",
        "4",
    )
    outcome = command(*words, "--loop", "--video", tmp_path / "dusk.gif", "--fps", "12.5", "--size", "24x20")
    assert outcome.status == 0
    assert outcome.err.endswith(f"{tmp_path / 'dusk.gif'} has 8 frames, described by dusk.manifest.json.\n")
    assert names(tmp_path) == ["dusk.gif", "dusk.manifest.json"]
    with Image.open(tmp_path / "dusk.gif") as animation:
        assert (getattr(animation, "n_frames", 1), animation.size, animation.info["duration"]) == (8, (24, 20), 80)
    before = (tmp_path / "dusk.gif").stat().st_mtime_ns
    assert (
        command(
            "render", "--network", networks / "plain.safetensors", "--resume", tmp_path / "dusk.manifest.json"
        ).status
        == 0
    )
    assert (tmp_path / "dusk.gif").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("30", (30, 1)),
        ("12.5", (25, 2)),
        ("23.976", (24000, 1001)),
        ("30000/1001", (30000, 1001)),
    ],
)
def test_rates_of_broadcasting_are_exact(text: str, rate: tuple[int, int]) -> None:
    assert frame_rate(text) == Fraction(*rate)


def test_a_sheet_shows_all_of_them(command: Command, tmp_path: Path) -> None:
    sheet = tmp_path / "sheets" / "all.jpg"
    outcome = command("render", "--seeds", "0-4", "--outdir", tmp_path / "out", "--sheet", sheet)
    assert outcome.status == 0
    assert outcome.err.endswith(f"See {sheet} for all of them at a glance.\n")
    with Image.open(sheet) as laid_out, Image.open(tmp_path / "out" / "seed0003.png") as fourth:
        assert laid_out.format == "JPEG"
        assert laid_out.size == (3 * 132 + 4, 2 * 132 + 4), "five in rows of three"
        cell = laid_out.crop((4, 136, 132, 264)).resize((1, 1), Image.Resampling.BOX).getpixel((0, 0))
        assert cell == pytest.approx(fourth.resize((1, 1), Image.Resampling.BOX).getpixel((0, 0)), abs=6)


def test_a_sheet_never_takes_the_place_of_a_picture(command: Command, tmp_path: Path) -> None:
    words = ("render", "--seeds", "0-4", "--outdir", tmp_path, "--sheet")
    assert "would overwrite one of the pictures" in command(*words, tmp_path / "seed0003.png").sentence
    assert names(tmp_path) == []
    assert command(*words, tmp_path / "all.png").status == 0
    again = ("render", "--from", tmp_path / "seed0003.png", "--outdir", tmp_path / "again", "--sheet")
    assert "would overwrite one of the pictures" in command(*again, tmp_path / "seed0003.png").sentence


def test_every_option_of_the_look_reaches_the_request(command: Command, networks: Path, tmp_path: Path) -> None:
    look = ("--trunc", "-0.5", "--trunc-cutoff", "2", "--class", "1", "--noise-mode", "random", "--noise-seed", "99")
    command("render", "--network", networks / "labelled.safetensors", "--seeds", "8", *look, "--outdir", tmp_path)
    request = read_picture(tmp_path / "seed0008.png").request
    recipe = request.blend[0][0]
    assert recipe.truncation == Truncation(-0.5, 2)
    assert recipe.latent.classes == ((1, 1.0),)
    assert request.noise == Noise("random", 99)


def test_without_options_psi_is_one_and_noise_constant_as_in_the_official_tools(
    command: Command, tmp_path: Path
) -> None:
    command("render", "--seeds", "1", "--outdir", tmp_path / "new" / "folder")
    request = read_picture(tmp_path / "new" / "folder" / "seed0001.png").request
    assert request.blend[0][0].truncation == Truncation(1.0, None)
    assert request.noise.mode == "const"


def test_a_stylegan1_is_truncated_on_its_first_eight_rows_unless_others_are_named(
    command: Command, tmp_path: Path
) -> None:
    path = write_stylegan1(tmp_path / "elder.pkl", make_stylegan1(resolution=64, channel_base=256))
    for words, cutoff in (((), 8), (("--trunc-cutoff", "10"), 10)):
        folder = tmp_path / str(cutoff)
        look = ("--seeds", "1", "--trunc", "0.7", *words, "--outdir", folder)
        assert command("render", "--network", path, *look).status == 0
        request = read_picture(folder / "seed0001.png").request
        assert request.blend[0][0].truncation == Truncation(0.7, cutoff)


def test_the_same_command_writes_the_same_bytes(command: Command, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        command("render", "--seeds", "1", "--noise-mode", "random", "--outdir", tmp_path / folder)
    assert (tmp_path / "a" / "seed0001.png").read_bytes() == (tmp_path / "b" / "seed0001.png").read_bytes()


def test_a_picture_is_made_again_from_its_recipe(command: Command, networks: Path, tmp_path: Path) -> None:
    network = networks / "other.safetensors"
    command("render", "--network", network, "--seeds", "3", "--trunc", "0.4", "--outdir", tmp_path)
    outcome = command("render", "--from", tmp_path / "seed0003.png", "--outdir", tmp_path / "again")
    assert outcome.status == 0
    assert "Warning" not in outcome.err
    assert (tmp_path / "again" / "seed0003.png").read_bytes() == (tmp_path / "seed0003.png").read_bytes()


def test_a_frame_of_a_sequence_is_made_again_with_the_network_named(
    command: Command, networks: Path, tmp_path: Path
) -> None:
    network = networks / "other.safetensors"
    words = ("--network", network, "--seeds", "1,2", "--path", "slerp", "--frames", "2", "--outdir", tmp_path)
    assert command("render", *words).status == 0
    picture = tmp_path / "path_00001.png"
    again = tmp_path / "again"
    assert command("render", "--from", picture, "--outdir", again).status == 0  # this user's list knows the network
    (platformdirs.user_data_path("latentloom", appauthor=False) / "models.json").unlink()
    lost = command("render", "--from", picture, "--outdir", again).sentence
    assert lost.startswith("The picture was made with other (SHA-256 ")
    assert lost.endswith("give its path with --network.")
    command("render", "--from", picture, "--network", network, "--outdir", tmp_path / "again")
    with Image.open(picture) as first, Image.open(tmp_path / "again" / "path_00001.png") as second:
        assert first.tobytes() == second.tobytes()


def test_a_session_becomes_its_picture(command: Command, networks: Path, tmp_path: Path) -> None:
    model = ModelReference(str(networks / "plain.safetensors"), "plain")
    session = Session(model, Position(2.25, 1.5), sliders=(Slider("sefa/1", 2.0),))
    save_session(tmp_path / "state.loom", session)
    assert command("render", "--from", tmp_path / "state.loom", "--outdir", tmp_path).status == 0
    restored = read_picture(tmp_path / "state.png").session
    assert restored is not None
    assert restored.position == session.position
    assert restored.sliders == session.sliders


def test_a_transform_is_rendered_where_the_network_takes_one(command: Command, networks: Path, tmp_path: Path) -> None:
    turned = Transform(0.1, 0.0, 30.0)
    facts = inspect_model(networks / "alias-free.safetensors")
    model = ModelReference(facts.path, facts.name, facts.model_id)
    save_session(tmp_path / "state.loom", Session(model, transform=turned))
    arguments = ("render", "--from", tmp_path / "state.loom", "--outdir", tmp_path)
    assert command(*arguments, "--network", networks / "alias-free.safetensors").status == 0
    made = read_picture(tmp_path / "state.png")
    assert made.request.transform == turned.matrix
    assert made.session is not None
    assert made.session.transform == turned
    plain = networks / "plain.safetensors"
    outcome = command("render", "--from", tmp_path / "state.png", "--network", plain, "--outdir", tmp_path / "again")
    assert outcome.status == 0
    assert "plain has no transform input, so the transform of state.png is left out" in outcome.err
    again = read_picture(tmp_path / "again" / "state.png")
    assert again.request.transform is None
    assert again.session is not None
    assert again.session.transform == Transform()
    sequence = ("render", "--from", tmp_path / "state.png", tmp_path / "state.png", "--path", "linear", "--frames", "1")
    assert command(*sequence, "--outdir", tmp_path / "path").status == 0
    assert read_picture(tmp_path / "path" / "path_00001.png").request.transform == turned.matrix


def test_what_another_network_lacks_is_left_out(command: Command, networks: Path, tmp_path: Path) -> None:
    labelled, alias_free = networks / "labelled.safetensors", networks / "alias-free.safetensors"
    facts = inspect_model(labelled)
    session = Session(
        ModelReference(facts.path, facts.name, facts.model_id),
        classes=((2, 1.0),),
        truncation=Truncation(0.5, facts.num_ws),
        noise=Noise(layer_gains=(0.5,) * len(facts.noise_layers)),
        tap=Tap("b8.conv1"),
    )
    save_session(tmp_path / "state.loom", session)
    outcome = command(
        "render", "--from", tmp_path / "state.loom", "--network", alias_free, "--outdir", tmp_path / "again"
    )
    assert outcome.status == 0, outcome.err
    assert "alias-free does not have all classes, rows, directions and layers that state.loom uses" in outcome.err
    document = read_picture(tmp_path / "again" / "state.png")
    (recipe, _), *_ = document.request.blend
    assert (recipe.latent.classes, document.request.noise.layer_gains, document.request.tap) == ((), (), None)
    assert document.session is not None
    assert document.session.classes == ()


def test_another_network_warns_and_renders_with_the_one_named(command: Command, networks: Path, tmp_path: Path) -> None:
    command("render", "--seeds", "3", "--outdir", tmp_path)
    other = networks / "other.safetensors"
    outcome = command("render", "--from", tmp_path / "seed0003.png", "--network", other, "--outdir", tmp_path / "again")
    assert outcome.status == 0
    assert "Warning: seed0003.png was made with plain (SHA-256 " in outcome.err
    document = read_picture(tmp_path / "again" / "seed0003.png")
    assert document.model.name == "other"
    with closing(open_renderer(other)) as renderer:
        assert document.request.model_id == renderer.facts.model_id


def test_a_network_that_changed_since_is_reported(command: Command, networks: Path, tmp_path: Path) -> None:
    network = tmp_path / "mine.safetensors"
    network.write_bytes((networks / "other.safetensors").read_bytes())
    command("render", "--network", network, "--seeds", "3", "--outdir", tmp_path)
    network.write_bytes((networks / "labelled.safetensors").read_bytes())
    sentence = command("render", "--from", tmp_path / "seed0003.png", "--outdir", tmp_path / "again").sentence
    assert f"but {network} is now another file" in sentence
    network.unlink()
    sentence = command("render", "--from", tmp_path / "seed0003.png", "--outdir", tmp_path / "again").sentence
    assert f"which is not at {network}" in sentence


def test_pictures_of_two_networks_need_one_to_be_chosen(command: Command, networks: Path, tmp_path: Path) -> None:
    command("render", "--seeds", "1", "--outdir", tmp_path)
    command("render", "--network", networks / "other.safetensors", "--seeds", "2", "--outdir", tmp_path)
    pictures = (tmp_path / "seed0001.png", tmp_path / "seed0002.png")
    assert "different networks" in command("render", "--from", *pictures, "--outdir", tmp_path / "again").sentence


def test_a_picture_never_takes_the_place_of_its_source(command: Command, tmp_path: Path) -> None:
    command("render", "--seeds", "1", "--outdir", tmp_path)
    before = (tmp_path / "seed0001.png").read_bytes()
    assert (
        "would be overwritten" in command("render", "--from", tmp_path / "seed0001.png", "--outdir", tmp_path).sentence
    )
    assert (tmp_path / "seed0001.png").read_bytes() == before
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "seed0001.png").write_bytes(before)
    twice = (tmp_path / "seed0001.png", tmp_path / "b" / "seed0001.png")
    assert "Two pictures" in command("render", "--from", *twice, "--outdir", tmp_path / "c").sentence


def test_only_pictures_of_latent_loom_are_replaced_without_overwrite(command: Command, tmp_path: Path) -> None:
    words = ("render", "--seeds", "1", "--outdir", tmp_path, "--sheet", tmp_path / "all.jpg")
    for name, place in (("seed0001.png", "--outdir"), ("all.jpg", "--sheet")):
        Image.new("RGB", (4, 4)).save(tmp_path / name)
        before = (tmp_path / name).read_bytes()
        assert command(*words).sentence == (
            f"{tmp_path / name} exists, and Latent Loom did not save it; "
            f"choose another {place}, or replace it with --overwrite."
        )
        assert names(tmp_path) == [name]
        assert (tmp_path / name).read_bytes() == before
        assert command(*words, "--overwrite").status == 0
        assert command(*words).status == 0, "its own pictures are rendered again"
        (tmp_path / "seed0001.png").unlink()


def test_a_network_with_classes_says_what_happens_without_one(command: Command, networks: Path, tmp_path: Path) -> None:
    network = networks / "labelled.safetensors"
    outcome = command("render", "--network", network, "--seeds", "0-2", "--outdir", tmp_path)
    assert outcome.err.count("Warning: labelled has 3 classes; without --class the label is all zeros.") == 1
    words = ("render", "--network", network, "--seeds", "0", "--outdir", tmp_path, "--class")
    assert command(*words, "3").sentence == "labelled has the classes 0 to 2, but --class 3 was given."
    assert "plain has no classes" in command("render", "--seeds", "0", "--class", "1", "--outdir", tmp_path).err


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("--seeds 1", "--outdir"),
        ("--outdir {0}", "One of --seeds, --from"),
        ("--outdir {0} --seeds 1 --from x.png", "--seeds and --from cannot be given together; leave out all but one"),
        ("--outdir {0} --seeds 5-1", "argument --seeds: a range of seeds must ascend, but 5-1 does not"),
        ("--outdir {0} --seeds 1 --trunc high", "argument --trunc: expected a number, not 'high'"),
        ("--outdir {0} --seeds 1 --noise-mode loud", "--noise-mode"),
        ("--outdir {0} --seeds 1 --noise-seed 3", "--noise-seed needs --noise-mode random"),
        ("--outdir {0} --seeds 1 --frames 3", "--frames belongs to a sequence"),
        ("--outdir {0} --seeds 1 --loop", "--loop belongs to a sequence"),
        ("--outdir {0} --seeds 1 --path cubic --sheet all.png", "--sheet lays out single pictures"),
        ("--outdir {0} --seeds 1 --sheet all.gif", "The sheet should end in .png or .jpg, but all.gif does not"),
        ("--outdir {0} --seeds 1-4097 --sheet all.png", "A sheet takes 4,096 pictures, but there are 4,097"),
        ("--outdir {0} --seeds 1 --sheet all.png --grid 101x1", "A sheet has 1 to 100 columns"),
        ("--outdir {0} --seeds 1-256 --sheet all.png --grid 16x16 --size 1024", "would have 256 and 271 million"),
        ("--outdir {0} --seeds 1-70 --sheet all.jpg --grid 70x1 --size 1024", "A JPEG file has sides of up to 65,500"),
        ("--outdir {0} --from x.png --class 3", "so --class cannot be given with it"),
        ("--outdir {0} --from x.png --trunc-cutoff 3", "so --trunc-cutoff cannot be given with it"),
        ("--outdir {0} --from {0}/missing.png", "missing.png cannot be opened"),
        ("--outdir {0} --from {0}/missing.loom", "missing.loom"),
        ("--outdir {0} --seeds 1 --trunc-cutoff 99", "--trunc-cutoff 99"),
        ("--outdir {0} --seeds 1 --network {0}/missing.pkl", "missing.pkl"),
        ("--outdir {0} --seeds 1 --path cubic --name a/b", "does not fit file names"),
        ("--outdir {0} --seeds 1,2 --path cubic --frames 999999", "A sequence can have 100,000 frames"),
        ("--outdir {0} --seeds 1 --format bmp", "--format"),
        ("--outdir {0} --seeds 1 --quality 90", "PNG has no quality, because it is exact"),
        ("--outdir {0} --seeds 1 --format jpeg --quality 101", "A quality must be 1 to 100, not 101"),
        ("--outdir {0} --seeds 1 --format jpeg --compression small", "--compression belongs to png and png16"),
        ("--outdir {0} --seeds 1 --size big", "expected a size like 512 or 1920x1080, not 'big'"),
        ("--outdir {0} --seeds 1 --size 512x0", "sides must be 1 to 16384 pixels"),
        ("--outdir {0} --seeds 1 --jobs 0", "--jobs"),
        ("--outdir {0} --seeds 1 --jobs 1000", "--jobs must be at most 256, not 1000"),
        ("--outdir {0} --seeds 1 --format exr --sheet a.png", "--sheet cannot show EXR files"),
        ("--seeds 1 --video {0}/a.gif", "--video needs a sequence"),
        ("--seeds 1,2 --path cubic --video {0}/a.avi", "a.avi should end in one of .webm"),
        ("--seeds 1,2 --path cubic --video {0}/a.gif --outdir {0}", "so --outdir cannot be given with it"),
        ("--seeds 1,2 --path cubic --video {0}/a.gif --format png", "so --format cannot be given with it"),
        ("--seeds 1,2 --path cubic --video {0}/a.gif --codec av1", "AV1 goes into .webm or .mp4 files"),
        ("--seeds 1,2 --path cubic --video {0}/a.gif --fps 60", "GIF takes 1 to 50 fps"),
        ("--seeds 1,2 --path cubic --video {0}/a.gif --fps 0", "GIF takes 1 to 50 fps"),
        ("--seeds 1,2 --path cubic --video {0}/a.gif --fps 1/0", "expected frames per second like 30 or 30000/1001"),
        ("--outdir {0} --seeds 1,2 --path cubic --fps 25", "--fps belongs to a video"),
        ("--outdir {0} --seed 1", "unrecognized arguments: --seed 1"),
        ("--outdir {0} --seeds 1 --surprise", "--surprise"),
    ],
)
def test_a_slip_gets_one_sentence(command: Command, tmp_path: Path, words: str, part: str) -> None:
    outcome = command("render", *words.format(tmp_path).split())
    assert outcome.status == 2
    assert part in outcome.err
    assert outcome.err.splitlines()[-1].startswith("latentloom render: ")
    assert outcome.err.endswith(".\n")
    assert names(tmp_path) == []


def test_a_picture_without_a_recipe_gets_one_sentence(command: Command, tmp_path: Path) -> None:
    Image.new("RGB", (4, 4)).save(tmp_path / "photo.png")
    sentence = command("render", "--from", tmp_path / "photo.png", "--outdir", tmp_path / "out").sentence
    assert sentence.startswith("This picture holds no Latent Loom recipe")


def test_help_is_in_the_words_people_know(command: Command) -> None:
    text = command("render", "--help").out
    for word in (
        "--network",
        "--seeds",
        "--trunc",
        "--class",
        "--noise-mode",
        "--outdir",
        "--path",
        "--frames",
        "--loop",
    ):
        assert word in text


def test_a_person_meets_the_same_picture_in_the_window(command: Command, tmp_path: Path) -> None:
    command("render", "--seeds", "123", "--outdir", tmp_path)
    session = read_picture(tmp_path / "seed0123.png").session
    assert session is not None
    assert session.position == GoToSeed(123).apply(Session()).position


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--seeds", "1", "--outdir", "n" * 300), "File name too long"),
        (("--seeds", "1", "--outdir", "/".join(["d" * 200] * 25)), "File name too long"),
        (("--seeds", "1", "--outdir", f"new/{'n' * 300}"), "File name too long"),
        (("--seeds", "1", "--outdir", "/".join("d" * 1200)), "File name too long"),
        (("--seeds", "1", "--outdir", "out", "--sheet", f"{'n' * 300}.png"), "File name too long"),
        (("--seeds", "1,2", "--path", "linear", "--outdir", "new", "--name", "n" * 300), "may have 100 characters"),
        (("--seeds", "1,2", "--path", "linear", "--outdir", "new", "--name", "字" * 100), "200 bytes"),
        (("--seeds", "1,2", "--path", "linear", "--outdir", "new", "--name", "a/b"), "does not fit file names"),
        (("--seeds", "1", "--outdir", "file/inside"), "Not a directory"),
        (("--seeds", "1", "--outdir", "file"), "Not a directory"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value)[:50],
)
def test_an_unwritable_output_is_refused_before_the_network_is_opened(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    sentence = command("render", "--network", "missing.pkl", *words).sentence
    assert problem in sentence
    assert len(sentence) < 250
    assert names(tmp_path) == ["file"]
