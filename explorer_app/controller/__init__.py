"""From gesture to request, and from frame to window: the only place that decides.

::

    Controller      what the window may ask for                                   controller.py
    FileControl     files in and out                                              file_control.py
    EngineControl   which device renders, and how                                 engine_control.py, device_selector.py
    ControllerState its parts, what the window may read, and how it is told       state.py
    Editor          session, history, the gesture under way                       editor.py
    Preview         requests down, frames up; drafts while something moves        preview.py, drafts.py
                    in their colours                                              draft_colours.py
    ModelOpener     opening models: reading, preparing, falling back              model_opener.py, adapting.py
    ThumbnailService
                    small pictures                                                thumbnail_service.py
    Documents       sessions and pictures from files and into files               documents.py, restoring.py
    ExportQueueController
                    the sequence that is exported, pictures in between            export_queue.py, unfinished_export.py
    Autosave        the last session comes back                                   autosave.py
    LastStart       the last picture, and what is known of its model              last_start.py, known_model.py
"""

from explorer_app.controller.adapting import adapt
from explorer_app.controller.controller import Controller
from explorer_app.controller.device_selector import may_need_processor, preferred_choice
from explorer_app.controller.device_state import Compiling, DeviceState
from explorer_app.controller.progress import ExportProgress, Loading

__all__ = [
    "Compiling",
    "Controller",
    "DeviceState",
    "ExportProgress",
    "Loading",
    "adapt",
    "may_need_processor",
    "preferred_choice",
]
