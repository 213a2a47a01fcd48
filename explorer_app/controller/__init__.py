"""From gesture to request, and from frame to window: the only place that decides.

::

    Controller                    makes the objects below, starts and closes them, routes events    controller.py
     ├─ engine: Engine            joins model, device and preview; ways of rendering, comparison    engine.py
     │   ├─ model: ModelOpener        reading, preparing, falling back              model_opener.py, known_model.py
     │   ├─ devices: DeviceSelector   which ones there are, which one renders       device_selector.py, device_state.py
     │   └─ preview: Preview          requests down, frames up; drafts and          preview.py, drafts.py,
     │                                their colours while something moves           preview_requests.py,
     │                                                                              draft_colours.py
     ├─ editing: Editing          edits, undo, drifting                             editing.py, drift.py
     │   ├─ kept: KeptPictures        stars, names, tags and order of what is kept  kept_pictures.py
     │   ├─ Editor                    session, history, gestures under way          editor.py
     │   ├─ LiveUpdates               when a live session is rendered and shown     live_updates.py
     │   └─ Autosave                  saves and restores the session                autosave.py
     ├─ mixing: Mixing            adds latents to the mix                           mixing.py
     ├─ playback: Playback        the playhead: plays, scrubs, records              playback.py
     ├─ played: PlayedValues      what sounds and controllers set at the moment     played_values.py
     ├─ photo_projection: PhotoProjection
     │                            the latent of a photo                             photo_projection.py,
     │                                                                              unfinished_search.py
     ├─ point_drag: PointDrag     handles, pins and strokes in the picture          point_drag.py, drag_points.py
     ├─ local_editing: LocalEditing
     │                            channels of layers, search for style channels     local_editing.py
     ├─ sounds: Sounds            the timeline's sounds: read, heard, what they move sounds.py
     ├─ live: LiveControl         controllers: sampled, learned, recorded           live_control.py
     │   └─ inputs: LiveInputs        OSC and MIDI, in and out                      live_inputs.py
     ├─ export: ExportQueueController
     │                            sequences, one at a time                          export_queue.py, export_run.py
     ├─ pictures: PictureSaver    the picture in the window, as a file              picture_saver.py
     ├─ files: Files              models, sessions, pictures, latents               files.py, pending_document.py,
     │                                                                              photo_file.py
     ├─ directions: DirectionFinding
     │                            the search for directions                         direction_finding.py
     ├─ arithmetic: KeptArithmetic
     │                            sums and differences of kept latents              kept_arithmetic.py
     ├─ learning: EncoderLearning the encoder of the model                         encoder_learning.py
     ├─ tuning: Tuning            the search for the fastest tiles on this GPU      tuning.py
     ├─ ladder: Ladder            what each optimisation gains on this device       ladder.py
     ├─ snapshots: Snapshots      a folder of training snapshots                    snapshots.py
     ├─ grid: VariationGrid       variations of the session, and their pictures     variation_grid.py,
     │                                                                              grid_sheets.py
     ├─ thumbnails: ThumbnailService
     │                            small pictures of any session                     thumbnail_service.py
     ├─ RowFetches                rows of w that an action waits for                row_fetches.py
     ├─ whole_pictures: WholePictures
     │                            pictures to compare with                          whole_pictures.py
     └─ LastStart                 what the next start shows first                   last_start.py

Each object receives the objects above it that it needs, and has its own signals; nothing refers to the Controller.
"""

from explorer_app.controller.controller import Controller
from explorer_app.controller.device_selector import DeviceSelector
from explorer_app.controller.device_state import Compiling, DeviceState
from explorer_app.controller.direction_finding import DirectionFinding
from explorer_app.controller.drag_points import DragPoint
from explorer_app.controller.editing import Editing
from explorer_app.controller.encoder_learning import EncoderLearning, LearningState
from explorer_app.controller.engine import Engine
from explorer_app.controller.export_queue import ExportQueueController
from explorer_app.controller.files import Files
from explorer_app.controller.kept_arithmetic import KeptArithmetic
from explorer_app.controller.ladder import Ladder, LadderState
from explorer_app.controller.live_control import Learning, LiveControl
from explorer_app.controller.live_inputs import InputKind, InputState, LiveInputs
from explorer_app.controller.local_editing import LocalEditing
from explorer_app.controller.mixing import Mixing
from explorer_app.controller.photo_file import Photo
from explorer_app.controller.photo_projection import PhotoProjection
from explorer_app.controller.picture_saver import PictureSaver
from explorer_app.controller.playback import Playback
from explorer_app.controller.played_values import PlayedValues
from explorer_app.controller.point_drag import PointDrag
from explorer_app.controller.preview import Preview
from explorer_app.controller.progress import ExportProgress, Loading
from explorer_app.controller.snapshots import Snapshots
from explorer_app.controller.sounds import Sounds
from explorer_app.controller.thumbnail_service import ThumbnailService
from explorer_app.controller.tuning import Tuning, TuningState
from explorer_app.controller.variation_grid import GridCell, GridKind, GridSettings, VariationGrid
from explorer_app.controller.whole_pictures import WholePictures

__all__ = [
    "Compiling",
    "Controller",
    "DeviceSelector",
    "DeviceState",
    "DirectionFinding",
    "DragPoint",
    "Editing",
    "EncoderLearning",
    "Engine",
    "ExportProgress",
    "ExportQueueController",
    "Files",
    "GridCell",
    "GridKind",
    "GridSettings",
    "InputKind",
    "InputState",
    "KeptArithmetic",
    "Ladder",
    "LadderState",
    "Learning",
    "LearningState",
    "LiveControl",
    "LiveInputs",
    "Loading",
    "LocalEditing",
    "Mixing",
    "Photo",
    "PhotoProjection",
    "PictureSaver",
    "Playback",
    "PlayedValues",
    "PointDrag",
    "Preview",
    "Snapshots",
    "Sounds",
    "ThumbnailService",
    "Tuning",
    "TuningState",
    "VariationGrid",
    "WholePictures",
]
