"""Sequences that become one file: what is in it, and what a stop, a kill or a full disk leaves."""

import contextlib
import importlib.util
import json
import weakref
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageSequence

from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.job import SequenceJob
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.manifest import manifest_bytes, read_manifest
from explorer_app.exporting.sequence import SequenceSettings, plan_sequence
from explorer_app.exporting.video.animation import AnimationCodec
from explorer_app.exporting.video.animation_files import write_apng, write_gif
from explorer_app.exporting.video.libav import VideoCodec
from explorer_app.exporting.video.video_format import CODECS, CodecName, VideoFormat, video_format_of_path
from explorer_app.session.session import ModelReference
from gpu_backend import Disk, Frame, FrameTimings, Latent, Point, Recipe, RenderRequest
from tests.helpers.failing_disk import FullDisk, MortalDisk, PowerCutError
from tests.helpers.fake_engine import fake_frame

SIDE = 64
VIDEOS = ("av1", "vp9", "prores", "prores4444", "h264", "h265")
ANIMATIONS = ("gif", "apng", "webp")
needs_av = pytest.mark.skipif(importlib.util.find_spec("av") is None, reason="PyAV is not installed; pip install av")
Folder = dict[str, bytes]


def key(seed: int) -> Keyframe:
    return Keyframe(((Recipe(Latent(Point(((seed, 1.0),)))), 1.0),))


def settings_for(folder: Path, codec: str, *, fps: int = 2, **others: Any) -> SequenceSettings:
    """Nine frames; at two a second three segments of four, four and one."""
    return SequenceSettings(
        keys=(key(1), key(2)),
        folder=folder,
        name="walk",
        model=ModelReference("", "m", "ab" * 32),
        kind="w-linear",
        frames_per_step=8,
        video=VideoFormat(codec, fps=Fraction(fps)),  # type: ignore[arg-type]
        **others,
    )


def picture_of(index: int) -> np.ndarray:
    """Flat colour blocks that differ in every frame, as R, G, B."""
    colours = np.array([[[200, 40, 30], [20, 180, 60]], [[30, 60, 210], [128, 128, 128]]], np.uint8)
    blocks = np.kron(colours, np.ones((SIDE // 2, SIDE // 2, 1), np.uint8)).astype(np.uint8)
    return np.ascontiguousarray(np.roll(blocks, index % 4 * 16, axis=1))


class Driver:
    """Renders coloured blocks for a job, and knows which frames were requested."""

    def __init__(self, settings: SequenceSettings) -> None:
        plan = plan_sequence(settings)
        self.places = {plan.request(index): index for index in range(len(plan))}
        self.settings = settings
        self.calls: list[int] = []

    def run(self, *, disk: Disk | None = None, stop_after: int = -1) -> None:
        job = SequenceJob(self.settings, disk=disk, threads=2)
        job.start()
        try:
            while len(self.calls) != stop_after and job.wait():
                request = job.next_request()
                if request is None:
                    continue  # the disk died after the wait
                self.calls.append(self.places[request])
                rgb = picture_of(self.calls[-1])
                pixels = np.concatenate([rgb[..., ::-1], np.full((SIDE, SIDE, 1), 255, np.uint8)], axis=-1)
                job.deliver(replace(fake_frame(request), pixels=np.ascontiguousarray(pixels)))
        finally:
            job.stop(cancelled=stop_after >= 0)
            assert job.join(60)
        if job.error is not None:
            raise job.error


def export(settings: SequenceSettings, **options: Any) -> list[int]:
    driver = Driver(settings)
    driver.run(**options)
    return driver.calls


def content(folder: Path) -> Folder:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def decoded(path: Path) -> list[np.ndarray]:
    import av

    with av.open(str(path)) as container:
        return [
            frame.reformat(
                format="rgb24", src_colorspace=1, dst_colorspace=1, src_color_range=1, dst_color_range=2
            ).to_ndarray()
            for frame in container.decode(container.streams.video[0])
        ]


def interiors(picture: np.ndarray) -> np.ndarray:
    """Means of 8 x 8 pixels in the middle of 16 x 32 blocks, away from the edges that chroma blurs."""
    return np.stack([picture[4:12, x + 4 : x + 12].mean(axis=(0, 1)) for x in range(0, SIDE, 16)])


@needs_av
@pytest.mark.parametrize("codec", VIDEOS)
def test_a_video_has_every_frame_in_its_colours(tmp_path: Path, codec: str) -> None:
    settings = settings_for(tmp_path, codec)
    export(settings)
    assert settings.single_path is not None
    assert sorted(content(tmp_path)) == sorted(["walk.manifest.json", settings.single_path.name])
    frames = decoded(settings.single_path)
    assert len(frames) == 9
    for index, frame in enumerate(frames):
        assert np.abs(interiors(frame) - interiors(picture_of(index))).max() < 6, "colours and order are right"
    state = json.loads((tmp_path / "walk.manifest.json").read_text())["state"]
    assert state == "complete"


def test_a_segment_deleted_meanwhile_is_reported_and_made_again(tmp_path: Path) -> None:
    class LossyDisk(Disk):
        def move(self, source: Path, target: Path, *, flushed: bool = True) -> None:
            super().move(source, target, flushed=flushed)
            if target.name == "00005.gif":
                target.with_name("00001.gif").unlink()

    settings = settings_for(tmp_path, "gif")
    with pytest.raises(ExportError, match=r"00001\.gif of walk\.gif was deleted"):
        export(settings, disk=LossyDisk())
    assert read_manifest(tmp_path / "walk.manifest.json").state == "unfinished"
    assert export(settings) == [1]
    assert read_manifest(tmp_path / "walk.manifest.json").state == "complete"


def test_a_gif_is_dithered_so_that_shades_have_no_steps(tmp_path: Path) -> None:
    down, right = np.mgrid[:128, :128].astype(np.uint8)
    shades = np.stack([down, right, down // 2 + right // 2, np.full_like(down, 255)], axis=-1)
    frame = fake_frame(plan_sequence(settings_for(tmp_path, "gif")).request(0))
    codec = AnimationCodec(VideoFormat("gif"), None)
    (tmp_path / "0.gif").write_bytes(codec.converted(replace(frame, pixels=shades)))
    codec.join([tmp_path / "0.gif"], 1, tmp_path / "a.gif", "a comment")
    with Image.open(tmp_path / "a.gif") as image:
        shown = np.asarray(image.convert("RGB")).astype(float)

    def means(picture: np.ndarray) -> np.ndarray:
        return picture.reshape(16, 8, 16, 8, 3).mean(axis=(1, 3))

    error = np.abs(means(shown) - means(shades[..., 2::-1].astype(float)))[1:-1, 1:-1]
    assert error.mean() < 0.5, "0.28 with dither, 0.77 without"


@needs_av
def test_frames_are_converted_as_copies_of_them_are_in_every_size() -> None:
    import av

    from explorer_app.exporting.video.libav import VideoCodec

    codec = VideoCodec(VideoFormat("h264"), None)
    for width, height in ((2, 2), (34, 66), (256, 256), (1022, 64)):
        pixels = np.random.default_rng(width).integers(0, 256, (height, width, 4), dtype=np.uint8)
        frame = Frame(RenderRequest("", ()), pixels, FrameTimings(0.0, 0.0, 0.0))
        copied = av.VideoFrame.from_ndarray(pixels, format="bgra").reformat(
            format="yuv420p",
            src_colorspace=1,
            dst_colorspace=1,
            src_color_range=2,
            dst_color_range=1,
            interpolation="BICUBIC",
        )
        assert np.array_equal(codec.converted(frame).to_ndarray(), copied.to_ndarray())


@needs_av
@pytest.mark.parametrize("codec", VIDEOS)
def test_a_video_is_tagged_as_bt709_in_limited_range_at_its_rate(tmp_path: Path, codec: str) -> None:
    import av

    settings = replace(settings_for(tmp_path, codec), video=VideoFormat(codec, fps=Fraction(30000, 1001)))  # type: ignore[arg-type]
    export(settings)
    with av.open(str(settings.single_path)) as container:
        stream = container.streams.video[0]
        context = stream.codec_context
        assert (context.color_range, context.colorspace) == (1, 1)
        assert next(container.decode(stream)).colorspace == 1
        # FFmpeg decodes 4444 with the 12 bits that it may have.
        assert context.pix_fmt == {"prores": "yuv422p10le", "prores4444": "yuv444p12le"}.get(codec, "yuv420p")
        assert float(stream.average_rate or 0) == pytest.approx(29.97, abs=0.2)


@needs_av
@pytest.mark.parametrize(
    ("codec", "quality", "tag"),
    [("prores", 95, "apch"), ("prores", 80, "apcn"), ("prores", 20, "apco"), ("prores4444", 80, "ap4h")],
)
def test_a_prores_says_which_of_its_kinds_it_is(tmp_path: Path, codec: CodecName, quality: int, tag: str) -> None:
    import av

    settings = replace(settings_for(tmp_path, codec), video=VideoFormat(codec, fps=Fraction(2), quality=quality))
    export(settings)
    with av.open(str(settings.single_path)) as container:
        assert container.streams.video[0].codec_context.codec_tag == tag


@needs_av
@pytest.mark.parametrize("codec", ["vp9", "prores4444"])
def test_a_video_keeps_the_transparency_of_its_frames_over_all_segments(tmp_path: Path, codec: CodecName) -> None:
    import av

    form = VideoFormat(codec, fps=Fraction(2))
    video = VideoCodec(form, (SIDE, SIDE))
    pixels = np.full((SIDE, SIDE, 4), (30, 60, 200, 255), np.uint8)
    pixels[SIDE // 2 :, : SIDE // 2, 3] = 128
    pixels[SIDE // 2 :, SIDE // 2 :, 3] = 0
    segments = []
    for place in range(2):
        encoder = video.encoder()
        for _ in range(4):
            frame = replace(fake_frame(RenderRequest("m", ())), pixels=pixels, has_alpha=True)
            encoder.add(video.converted(frame))
        segments.append(tmp_path / f"{place}{form.file_ending}")
        segments[-1].write_bytes(encoder.finish())
    target = tmp_path / "whole"
    video.join(segments, 8, target, "")
    with av.open(str(target)) as container:
        stream = container.streams.video[0]
        if codec == "vp9":
            assert {key.lower(): value for key, value in stream.metadata.items()}["alpha_mode"] == "1"
        # FFmpeg's own decoder of VP9 leaves alpha out.
        decoder = av.CodecContext.create("libvpx-vp9", "r") if codec == "vp9" else stream.codec_context
        shown = [
            picture.to_ndarray(format="bgra")
            for packet in container.demux(stream)
            for picture in decoder.decode(packet)
        ]
    assert len(shown) == 8
    for picture in shown:
        for (y, x), alpha in (((10, 10), 255), ((50, 10), 128), ((50, 50), 0)):
            assert abs(int(picture[y, x, 3]) - alpha) <= 2


@needs_av
@pytest.mark.parametrize("codec", VIDEOS)
@pytest.mark.parametrize("fps", [12, 30])
def test_a_short_video_states_its_rate_exactly(tmp_path: Path, codec: str, fps: int) -> None:
    import av

    settings = settings_for(tmp_path, codec, fps=fps)
    export(settings)
    with av.open(str(settings.single_path)) as container:
        assert container.streams.video[0].average_rate == fps


@needs_av
@pytest.mark.parametrize(("side", "has_b"), [(64, False), (128, True)])
def test_small_pictures_have_no_b_frames_in_h265_which_x265_gets_wrong(tmp_path: Path, side: int, has_b: bool) -> None:
    import av

    settings = settings_for(tmp_path, "h265", size=(side, side))
    export(settings)
    with av.open(str(settings.single_path)) as container:
        kinds = {frame.pict_type for frame in container.decode(container.streams.video[0])}
    assert (av.video.frame.PictureType.B in kinds) == has_b


@needs_av
@pytest.mark.parametrize("codec", ["h264", "prores"])
def test_odd_sizes_become_even(tmp_path: Path, codec: str) -> None:
    settings = settings_for(tmp_path, codec, size=(51, 33))
    export(settings)
    assert settings.single_path is not None
    assert decoded(settings.single_path)[0].shape == (32, 50, 3)


@pytest.mark.parametrize("codec", ANIMATIONS)
def test_an_animation_has_every_frame_for_its_time_and_loops(tmp_path: Path, codec: str) -> None:
    settings = settings_for(tmp_path, codec, fps=15)
    export(settings)
    assert settings.single_path is not None
    with Image.open(settings.single_path) as animation:
        assert animation.info["loop"] == 0
        frames, times = [], []
        for frame in ImageSequence.Iterator(animation):
            frames.append(np.asarray(frame.convert("RGB")))
            times.append(frame.info["duration"])
    assert len(frames) == 9
    assert sum(times) == pytest.approx(600, abs=9)
    for index, shown in enumerate(frames):
        assert np.abs(interiors(shown) - interiors(picture_of(index))).max() < 8


@pytest.mark.parametrize("codec", ANIMATIONS)
def test_frames_that_are_equal_take_their_time_and_no_space(tmp_path: Path, codec: str) -> None:
    frame = fake_frame(plan_sequence(settings_for(tmp_path, codec)).request(0))
    form = AnimationCodec(VideoFormat(codec, fps=Fraction(10)), None)  # type: ignore[arg-type]
    paths = []
    for place, picture in enumerate((0, 1, 1, 1, 2)):
        rgb = picture_of(picture)
        pixels = np.concatenate([rgb[..., ::-1], np.full((SIDE, SIDE, 1), 255, np.uint8)], axis=-1)
        paths.append(tmp_path / f"{place}{form.segment_ending}")
        paths[-1].write_bytes(form.converted(replace(frame, pixels=np.ascontiguousarray(pixels))))
    form.join(paths, 5, tmp_path / "a", "latentloom abc")
    assert form.comment_of(tmp_path / "a") == "latentloom abc"
    with Image.open(tmp_path / "a") as animation:
        times = []
        for shown, picture in zip(ImageSequence.Iterator(animation), (0, 1, 2), strict=True):
            pixels = np.asarray(shown.convert("RGB"))
            assert np.abs(interiors(pixels) - interiors(picture_of(picture))).max() < 8
            times.append(shown.info["duration"])
    assert times == [100, 300, 100]


@pytest.mark.parametrize("codec", ANIMATIONS)
@pytest.mark.parametrize("frame_count", [1, 3])
def test_an_animation_in_which_nothing_moves_is_written(tmp_path: Path, codec: str, frame_count: int) -> None:
    path = tmp_path / "a"
    form = AnimationCodec(VideoFormat(codec, fps=Fraction(7)), None)  # type: ignore[arg-type]
    segment = tmp_path / f"0{form.segment_ending}"
    segment.write_bytes(form.converted(fake_frame(plan_sequence(settings_for(tmp_path, codec)).request(0))))
    form.join([segment] * frame_count, frame_count, path, "latentloom abc")
    assert form.comment_of(path) == "latentloom abc"
    with Image.open(path) as animation:
        assert len(list(ImageSequence.Iterator(animation))) == 1


@pytest.mark.parametrize("codec", ["gif", "apng"])
def test_times_that_cannot_be_stored_stay_apart(tmp_path: Path, codec: str) -> None:
    frame = fake_frame(plan_sequence(settings_for(tmp_path, codec)).request(0))
    form = AnimationCodec(VideoFormat(codec), None)  # type: ignore[arg-type]
    path = tmp_path / "0"
    path.write_bytes(form.converted(frame))
    with (tmp_path / "a").open("wb") as file:
        (write_gif if codec == "gif" else write_apng)([path] * 3, [0xFFFF, 0xFFFE, 1], "", file)
    with Image.open(tmp_path / "a") as animation:
        assert len(list(ImageSequence.Iterator(animation))) == 2


@pytest.mark.parametrize("codec", ANIMATIONS)
def test_joining_holds_one_frame_at_a_time(tmp_path: Path, codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = fake_frame(plan_sequence(settings_for(tmp_path, codec)).request(0))
    form = AnimationCodec(VideoFormat(codec), None)  # type: ignore[arg-type]
    paths = []
    noise = np.random.default_rng(5)
    for place in range(24):
        pixels = noise.integers(0, 256, (256, 256, 4), np.uint8)
        paths.append(tmp_path / f"{place}{form.segment_ending}")
        paths[-1].write_bytes(form.converted(replace(frame, pixels=pixels)))
    made: list[weakref.ref[Image.Image]] = []  # a set of them is impossible: images are compared by their pixels
    most = 0
    make = Image.Image.__init__

    def count(image: Image.Image) -> None:
        nonlocal most
        make(image)
        made.append(weakref.ref(image))
        most = max(most, sum(item() is not None for item in made))

    monkeypatch.setattr(Image.Image, "__init__", count)
    form.join(paths, len(paths), tmp_path / "a", "latentloom abc")
    assert most < 10, "Pillow's own writers hold all frames"


EVERY_CODEC = [*(pytest.param(codec, marks=needs_av) for codec in VIDEOS), *ANIMATIONS]


@pytest.mark.parametrize("codec", EVERY_CODEC)
def test_a_stopped_video_goes_on_by_its_segments_and_ends_with_the_same_bytes(tmp_path: Path, codec: str) -> None:
    export(settings_for(tmp_path / "whole", codec))
    settings = settings_for(tmp_path / "out", codec)
    export(settings, stop_after=6)
    assert settings.single_path is not None
    assert not settings.single_path.exists()
    calls = export(read_manifest(settings.manifest_path).settings)
    assert calls == list(range(6 if codec in ANIMATIONS else 4, 9)), "a whole segment is not rendered again"
    assert content(tmp_path / "out") == content(tmp_path / "whole")
    assert export(settings) == []


@pytest.mark.parametrize("operation", range(12))
def test_a_video_killed_at_any_operation_is_finished_by_the_next_run(tmp_path: Path, operation: int) -> None:
    whole = settings_for(tmp_path / "whole", "gif")
    export(whole)
    settings = settings_for(tmp_path / "out", "gif")
    with contextlib.suppress(PowerCutError):
        export(settings, disk=MortalDisk(operation * 2))
    if (tmp_path / "out" / "walk.gif").exists():
        assert content(tmp_path / "out")["walk.gif"] == content(tmp_path / "whole")["walk.gif"]
    export(settings)
    assert content(tmp_path / "out") == content(tmp_path / "whole")
    assert [path.name for path in (tmp_path / "out").iterdir() if path.is_dir()] == []


@pytest.mark.parametrize("operation", [3, 6])
@pytest.mark.parametrize("codec", EVERY_CODEC)
def test_a_killed_video_of_every_codec_ends_with_the_same_bytes(tmp_path: Path, codec: str, operation: int) -> None:
    export(settings_for(tmp_path / "whole", codec))
    settings = settings_for(tmp_path / "out", codec)
    with contextlib.suppress(PowerCutError):
        export(settings, disk=MortalDisk(operation))
    assert settings.single_path is not None
    assert not settings.single_path.exists(), "a video under its name is whole"
    export(settings)
    assert content(tmp_path / "out") == content(tmp_path / "whole")


@pytest.mark.parametrize("codec", EVERY_CODEC)
def test_a_full_disk_breaks_no_video_of_any_codec(tmp_path: Path, codec: str) -> None:
    export(settings_for(tmp_path / "whole", codec))
    settings = settings_for(tmp_path / "out", codec)
    with pytest.raises(ExportError, match=r"^The disk is full"):
        export(settings, disk=FullDisk(3))
    export(settings)
    assert content(tmp_path / "out") == content(tmp_path / "whole")


@pytest.mark.parametrize("writes", [1, 4, 10])
def test_a_full_disk_is_reported_in_a_sentence_and_costs_nothing(tmp_path: Path, writes: int) -> None:
    settings = settings_for(tmp_path, "gif")
    with pytest.raises(ExportError, match=r"^The disk is full"):
        export(settings, disk=FullDisk(writes))
    export(settings)
    assert sorted(content(tmp_path)) == ["walk.gif", "walk.manifest.json"]


def test_a_file_that_is_not_this_video_is_refused_and_replaced_only_if_asked(tmp_path: Path) -> None:
    (tmp_path / "walk.gif").write_bytes(b"a photograph")
    settings = settings_for(tmp_path, "gif")
    with pytest.raises(ExportError, match=r"holds a walk\.gif that is not this sequence"):
        export(settings)
    assert (tmp_path / "walk.gif").read_bytes() == b"a photograph"
    export(replace(settings, overwrite=True))
    assert (tmp_path / "walk.gif").read_bytes().startswith(b"GIF89a")


def test_another_sequence_does_not_take_segments_over(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, "gif")
    export(settings, stop_after=5)
    other = replace(settings, keys=(key(1), key(3)), overwrite=True)
    assert export(other) == list(range(9))
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


def test_a_whole_video_whose_segments_cannot_be_removed_is_no_failure(tmp_path: Path) -> None:
    class LockedFolders(Disk):
        def remove(self, path: Path) -> None:
            if path.name.endswith(".segments"):
                raise PermissionError(13, "Permission denied", str(path))
            super().remove(path)

    settings = settings_for(tmp_path, "gif")
    for frames in (list(range(9)), []):
        assert export(settings, disk=LockedFolders()) == frames
        assert read_manifest(settings.manifest_path).state == "complete"
    export(settings)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["walk.gif", "walk.manifest.json"]


def test_a_manifest_brings_the_video_back(tmp_path: Path) -> None:
    settings = replace(
        settings_for(tmp_path, "av1", size=(640, 360)), video=VideoFormat("av1", ".mp4", Fraction(24000, 1001), 55)
    )
    settings.manifest_path.write_bytes(manifest_bytes(settings, "unfinished", None))
    found = read_manifest(settings.manifest_path).settings
    assert found.makes_the_same_as(settings)
    assert found.video == settings.video
    assert not found.makes_the_same_as(replace(settings, video=VideoFormat("av1", ".mp4", Fraction(24), 55)))


@pytest.mark.parametrize(
    "files",
    [
        {"video": "divx", "ending": ".avi", "fps": [30, 1]},
        {"video": ["av1"], "ending": ".webm", "fps": [30, 1]},
        {"video": "av1", "ending": ".gif", "fps": [30, 1]},
        {"video": "av1", "ending": 3, "fps": [30, 1]},
        {"video": "av1", "ending": ".webm", "fps": [30]},
        {"video": "av1", "ending": ".webm", "fps": [30, 0]},
        {"video": "av1", "ending": ".webm", "fps": [100_000, 1]},
        {"video": "gif", "ending": ".gif", "fps": [30, 1], "quality": 50},
    ],
)
def test_a_manifest_with_a_wrong_video_gets_a_sentence(tmp_path: Path, files: Any) -> None:
    settings = settings_for(tmp_path, "gif")
    data = json.loads(manifest_bytes(settings, "unfinished", None))
    settings.manifest_path.write_text(json.dumps({**data, "files": files}))
    with pytest.raises(ExportError, match=r"^The manifest walk\.manifest\.json is damaged: .*\.$"):
        read_manifest(settings.manifest_path)


def test_without_the_extra_a_video_names_the_command_that_adds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("explorer_app.exporting.video.hardware.has_video_extra", lambda: False)
    with pytest.raises(ExportError, match=r"AV1 needs PyAV, .* pip install av$"):
        export(settings_for(tmp_path / "a", "av1"))
    assert not (tmp_path / "a").exists()
    export(settings_for(tmp_path / "b", "gif"))


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("a.webm", "av1"),
        ("a.MP4", "h264"),
        ("a.mov", "prores"),
        ("a.gif", "gif"),
        ("a.apng", "apng"),
        ("a.webp", "webp"),
    ],
)
def test_the_ending_says_the_codec(name: str, codec: str) -> None:
    assert video_format_of_path(Path(name)).codec == codec


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("a.avi", {}, "should end in one of .webm"),
        ("a.gif", {"codec": "av1"}, "AV1 goes into .webm or .mp4 files"),
        ("a.gif", {"fps": Fraction(60)}, "GIF takes 1 to 50 fps"),
        ("a.gif", {"quality": 5}, "GIF has no quality"),
        ("a.webm", {"quality": 101}, "A quality must be 1 to 100"),
    ],
)
def test_options_that_exclude_each_other_are_refused_with_a_sentence(
    name: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ExportError) as refusal:
        video_format_of_path(Path(name), **options)
    assert words in refusal.value.sentence


def test_every_codec_says_what_it_is_for() -> None:
    assert all(facts.about.endswith(".") and facts.endings for facts in CODECS.values())


@pytest.mark.parametrize("codec", ANIMATIONS)
@pytest.mark.parametrize("size", [None, (12, 12)])
def test_what_is_transparent_stays_so_or_is_white_in_a_gif(
    tmp_path: Path, codec: str, size: tuple[int, int] | None
) -> None:
    made = fake_frame(plan_sequence(settings_for(tmp_path, codec)).request(0))
    form = AnimationCodec(VideoFormat(codec, fps=Fraction(10)), size)  # type: ignore[arg-type]
    paths = []
    for place in range(2):
        pixels = np.full((24, 24, 4), 60 + 60 * place, np.uint8)
        pixels[:, :12, 3], pixels[:, 12:, 3] = 0, 255
        paths.append(tmp_path / f"{place}{form.segment_ending}")
        paths[-1].write_bytes(form.converted(replace(made, pixels=pixels, has_alpha=True)))
    form.join(paths, 2, tmp_path / "a", "latentloom abc")
    with Image.open(tmp_path / "a") as animation:
        shown = [np.asarray(frame.convert("RGBA")) for frame in ImageSequence.Iterator(animation)]
    assert len(shown) == 2
    for place, frame in enumerate(shown):
        half = frame.shape[1] // 2
        solid = frame[:, half + 3 :].astype(int)
        assert np.abs(solid - [*[60 + 60 * place] * 3, 255]).max() < 8
        clear = frame[:, : half - 3]
        assert (clear >= 250).all() if codec == "gif" else (clear[..., 3] == 0).all()


def test_a_video_that_replaces_a_sequence_takes_its_pictures_away_and_no_others(tmp_path: Path) -> None:
    pictures = replace(settings_for(tmp_path, "gif"), video=None)
    export(pictures)
    Image.new("RGB", (4, 4)).save(tmp_path / "walk_00003.jpg")
    Image.new("RGB", (4, 4)).save(tmp_path / "walk_77777.png")
    with pytest.raises(ExportError, match="a different sequence"):
        export(settings_for(tmp_path, "gif"))
    assert (tmp_path / "walk_00008.png").exists(), "nothing is taken away unless asked"
    export(settings_for(tmp_path, "gif", overwrite=True))
    assert sorted(content(tmp_path)) == ["walk.gif", "walk.manifest.json", "walk_00003.jpg", "walk_77777.png"]
