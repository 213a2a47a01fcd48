"""The commands of the action table, in groups; each group gets only the objects that it uses."""

from __future__ import annotations

from explorer_app.window.shell.edit_commands import EditCommands
from explorer_app.window.shell.file_commands import FileCommands
from explorer_app.window.shell.help_commands import HelpCommands
from explorer_app.window.shell.model_commands import ModelCommands
from explorer_app.window.shell.play_commands import PlayCommands
from explorer_app.window.shell.preference_commands import PreferenceCommands
from explorer_app.window.shell.view_commands import ViewCommands
from gpu_backend import dataclass


@dataclass(frozen=True, slots=True)
class Commands:
    """One method per action; `ActionSpec.command` names group and method: "files.open_model"."""

    files: FileCommands
    edit: EditCommands
    preferences: PreferenceCommands
    view: ViewCommands
    model: ModelCommands
    play: PlayCommands
    help: HelpCommands
