"""Which file a sound of a project is on this machine.

Projects hold a sound's SHA-256 and its path as seen from the project's folder. A list in the user's data folder says
where the file was last seen, so that a project that was never saved, or was moved, finds its sounds too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePosixPath

import platformdirs

from explorer_app.audio.analysis import Analysis
from explorer_app.audio.analysis_cache import analysis_of, envelope_of
from explorer_app.audio.decoding import SUFFIXES, SoundError, file_digest, sound_facts
from explorer_app.session.envelopes import Envelope, EnvelopeKey, free_name, needed_envelopes, with_sound
from explorer_app.session.model_hashes import ModelHashes
from explorer_app.session.model_places import ModelPlaces
from explorer_app.session.session import ModelReference, Session
from explorer_app.session.tracks import MAX_SOUNDS, Sound, Timeline
from gpu_backend import is_regular_file


class SoundFiles:
    """The list of places, and what was hashed before. Reading never fails.

    Parameters
    ----------
    folder
        Folder of both tables; None keeps them in memory.
    """

    def __init__(self, folder: Path | None) -> None:
        self._places = ModelPlaces(folder / "sounds.json" if folder is not None else None)
        self._hashes = ModelHashes(folder / "sound-hashes.json" if folder is not None else None)

    @staticmethod
    def of_this_user() -> SoundFiles:
        """Return the list that all programs of this user share."""
        return _shared(platformdirs.user_data_path("latentloom", appauthor=False))

    def sound_of(
        self, path: Path, name: str, *, project: Path | None = None, should_stop: Callable[[], bool] = lambda: False
    ) -> Sound:
        """Return a file as a sound of a project at the path `project`, and note where it is. Raises SoundError."""
        facts = sound_facts(path)
        digest = self.digest(path, should_stop)
        self.remember(digest, path)
        return Sound(name, digest, relative_path(path, project), facts.seconds)

    def digest(self, path: Path, should_stop: Callable[[], bool] = lambda: False) -> str:
        """Return the SHA-256 of a file, which is read unless it was read before. Raises SoundError."""
        try:
            status = path.stat()
            found = self._hashes.find(path, status) or file_digest(path, should_stop)
            self._hashes.remember(path, status, found)
        except OSError as error:
            raise SoundError(f"{path.name} cannot be read ({error.strerror}).", str(error)) from error
        return found

    def remember(self, digest: str, path: Path) -> None:
        """Note where a sound is. A list that cannot be written is no reason to refuse the sound."""
        try:
            self._places.remember(digest, path)
        except OSError:
            return

    def find(self, sound: Sound, project: Path | None = None) -> Path:
        """Return a sound's file: beside the project, else where it was last seen.

        Raises
        ------
        SoundError
            If it is missing, or another file has its path.
        """
        name = PurePosixPath(sound.path)
        candidates = [project.parent / name, project.parent / name.name] if project is not None else []
        seen = self._places.last_seen(ModelReference(model_id=sound.digest))
        if seen:
            candidates.append(Path(seen))
        for path in candidates:
            if is_regular_file(path) and self.digest(path) == sound.digest:
                self.remember(sound.digest, path)
                return path
        where = f"; put it beside {project.name}" if project is not None else ""
        raise SoundError(f"The sound {name.name} was not found{where}.")


@cache
def _shared(folder: Path) -> SoundFiles:
    """Return the tables of a folder, the same ones for the whole program: a disk that is full loses no places."""
    return SoundFiles(folder)


def relative_path(path: Path, project: Path | None) -> str:
    """Return a file's path as seen from the folder of a project; its name where it is not below it."""
    try:
        shown = path.absolute().relative_to(project.absolute().parent).as_posix() if project is not None else path.name
    except ValueError:
        shown = path.name
    return shown.replace(":", "_").replace("\\", "_")


def with_files(
    timeline: Timeline, paths: Iterable[Path], files: SoundFiles, should_stop: Callable[[], bool] = lambda: False
) -> Timeline:
    """Return the timeline with files as sounds, named after them; a folder means the sound files in it.

    Raises
    ------
    SoundError
        If one cannot be read, there is none, or there would be more than `MAX_SOUNDS`.
    """
    chosen: list[Path] = []
    folders: list[str] = []
    for path in paths:
        if path.is_dir():
            folders.append(path.name)
            chosen += sorted(item for item in path.iterdir() if item.suffix.lower() in SUFFIXES and item.is_file())
        else:
            chosen.append(path)
    if not chosen:
        where = f" in {folders[0]}" if folders else ""
        models = "; a folder of models is opened by Model > Training snapshots" if folders else ""
        raise SoundError(f"There is no sound{where}; choose files that end in {', '.join(SUFFIXES)}{models}.")
    if len(timeline.sounds) + len(chosen) > MAX_SOUNDS:
        raise SoundError(too_many_sounds())
    for path in chosen:
        sound = files.sound_of(path, free_name(timeline, path.stem), should_stop=should_stop)
        timeline = with_sound(timeline, sound)
    return timeline


def too_many_sounds() -> str:
    """Return the sentence that refuses more sounds than a timeline may have."""
    return f"A timeline may have {MAX_SOUNDS} sounds, but this one would have more."


def with_relative_paths(timeline: Timeline, files: SoundFiles, project: Path) -> Timeline:
    """Return the timeline with the paths of its sounds as seen from the place that a project is written to."""
    sounds = []
    for sound in timeline.sounds:
        try:
            sounds.append(replace(sound, path=relative_path(files.find(sound, project), project)))
        except SoundError:
            sounds.append(sound)  # missing sounds keep the path that they had
    return timeline if tuple(sounds) == timeline.sounds else replace(timeline, sounds=tuple(sounds))


def found_sounds(session: Session, files: SoundFiles, project: Path | None = None) -> dict[str, Path]:
    """Return the files of a session's sounds, by SHA-256. Raises SoundError if one is missing."""
    return {sound.digest: files.find(sound, project) for sound in session.timeline.sounds}


def envelopes_of(session: Session, files: SoundFiles, project: Path | None = None) -> dict[EnvelopeKey, Envelope]:
    """Return the envelopes that a session's patches need. Raises SoundError if a sound is missing or damaged."""
    analyses: dict[str, Analysis] = {}
    sounds = {sound.digest: sound for sound in session.timeline.sounds}
    result = {}
    for key in needed_envelopes(session):
        digest, feature = key
        if digest not in analyses:
            analyses[digest] = analysis_of(files.find(sounds[digest], project), digest)
        result[key] = envelope_of(analyses[digest], digest, feature)
    return result
