"""The table of actions. Menus, shortcuts and the shortcut list under Help are built from it.

To add an action, add a row here and the method named in `command` to a group of `Commands`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Menu = Literal["File", "Edit", "View", "Model", "Play", "Help"]
Need = Literal["", "model", "picture", "undo", "redo", "exporting", "transform", "gpu"]

MENUS: tuple[Menu, ...] = ("File", "Edit", "View", "Model", "Play", "Help")


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """One row of the table.

    Attributes
    ----------
    key
        Name of the action.
    text
        Menu text; an ampersand marks the mnemonic.
    icon
        Name from `explorer_app.window.look.icons`, empty for none.
    shortcuts
        Key sequences; menus show the first.
    command
        Group and method of `Commands` that it calls: "files.open_model".
    tip
        One sentence; ``{log_path}`` stands for the path of the log file.
    menu
        Menu of the action; `also` names a second one, as for Inspect.
    needs
        Condition that enables the action; transform actions are hidden if the network has no transform.
    checkable
        Whether the action is checkable; its method gets the state.
    group
        Group of exclusive actions; empty for none.
    starts_section
        Whether a separator precedes it in the menu.
    button
        Text of its buttons; empty for the menu text.
    """

    key: str
    text: str
    icon: str
    shortcuts: tuple[str, ...]
    command: str
    menu: Menu
    tip: str
    needs: Need = ""
    checkable: bool = False
    group: str = ""
    starts_section: bool = False
    also: Menu | None = None
    button: str = ""

    @property
    def plain_text(self) -> str:
        """The menu text without ampersand and ellipsis."""
        return self.text.replace("&", "").rstrip("…")


ACTIONS: tuple[ActionSpec, ...] = (
    ActionSpec(
        "open-model",
        "&Open model…",
        "open",
        ("Ctrl+O",),
        "files.open_model",
        "File",
        "Open a StyleGAN file: .pkl, .pt or .safetensors.",
        also="Model",
    ),
    ActionSpec(
        "open-session",
        "Open &session…",
        "session",
        ("Ctrl+Shift+O",),
        "files.open_session",
        "File",
        "Open a session from a .loom file.",
        starts_section=True,
    ),
    ActionSpec(
        "save-session",
        "S&ave session…",
        "save",
        ("Ctrl+S",),
        "files.save_session",
        "File",
        "Save the session to a .loom file.",
    ),
    ActionSpec(
        "import-latent",
        "I&mport latent…",
        "session",
        ("Ctrl+Alt+W",),
        "files.import_latent",
        "File",
        "Show w rows from a .npz, .npy or .pt file, as projectors write them.",
    ),
    ActionSpec(
        "export-latent",
        "Export &latent…",
        "save",
        ("Ctrl+Alt+X",),
        "files.export_latent",
        "File",
        "Write the picture's w rows to a .npz, .npy or .pt file.",
    ),
    ActionSpec(
        "open-picture",
        "&Restore from picture…",
        "picture",
        ("Ctrl+Alt+O",),
        "files.open_picture",
        "File",
        "Restore the session stored in a saved picture.",
    ),
    ActionSpec(
        "save-picture",
        "Save &picture…",
        "picture",
        ("Ctrl+Shift+S",),
        "files.save_picture",
        "File",
        "Save what the canvas shows, the picture or a layer, in its full size with its recipe.",
        "picture",
        starts_section=True,
    ),
    ActionSpec(
        "export",
        "&Export picture, sequence or video…",
        "export",
        ("Ctrl+E",),
        "files.export_sequence",
        "File",
        "Make a still, a sequence along a path of latents, a video or a GIF; even while a layer is shown.",
        "model",
        button="Export…",
    ),
    ActionSpec(
        "exports",
        "E&xports…",
        "queue",
        ("Ctrl+Shift+E",),
        "files.show_exports",
        "File",
        "Show the exports that run, wait and are done; pause, reorder and resume them.",
    ),
    ActionSpec(
        "resume-export",
        "Resume export &from manifest…",
        "",
        ("Ctrl+Alt+E",),
        "files.resume_export",
        "File",
        "Resume a stopped export: choose the .manifest.json beside its frames.",
    ),
    ActionSpec(
        "cancel-export",
        "&Cancel export",
        "cancel",
        ("Ctrl+.",),
        "files.cancel_export",
        "File",
        "Stop the running export; it can be resumed later.",
        "exporting",
    ),
    ActionSpec(
        "quit",
        "&Quit",
        "quit",
        ("Ctrl+Q",),
        "files.quit",
        "File",
        "Close the window; the next start restores the session.",
        starts_section=True,
    ),
    ActionSpec(
        "undo", "&Undo", "undo", ("Ctrl+Z",), "edit.undo", "Edit", "Undo the last step; one drag is one step.", "undo"
    ),
    ActionSpec(
        "redo",
        "&Redo",
        "redo",
        ("Ctrl+Shift+Z", "Ctrl+Y"),
        "edit.redo",
        "Edit",
        "Redo the step that was undone.",
        "redo",
    ),
    ActionSpec(
        "mix-in",
        "&Mix in current",
        "mix-in",
        ("A",),
        "edit.mix_in_current",
        "Edit",
        "Add the current latent to the mix as a source.",
        "model",
        starts_section=True,
    ),
    ActionSpec(
        "keep",
        "&Keep this step",
        "star",
        ("K", "S"),
        "edit.keep_current",
        "Edit",
        "Keep this step with a star, or remove its star.",
        "model",
    ),
    ActionSpec(
        "zero-sliders",
        "&Zero sliders",
        "zero",
        ("Z",),
        "edit.zero_sliders",
        "Edit",
        "Set every direction to 0.",
        "model",
        starts_section=True,
    ),
    ActionSpec(
        "reset-truncation",
        "Reset &truncation",
        "reset",
        ("T",),
        "edit.reset_truncation",
        "Edit",
        "Set psi to 0.7 on all rows.",
        "model",
    ),
    ActionSpec(
        "preferences",
        "&Preferences…",
        "",
        ("Ctrl+,",),
        "preferences.preferences",
        "Edit",
        "Choose the theme, the font and other preferences.",
        starts_section=True,
    ),
    ActionSpec("fit", "&Fit", "fit", ("F",), "view.fit", "View", "Fit the whole picture into the canvas."),
    ActionSpec(
        "one-to-one",
        "&1:1",
        "one-to-one",
        ("1",),
        "view.one_to_one",
        "View",
        "Show one picture pixel per screen pixel.",
    ),
    ActionSpec(
        "zoom-in",
        "Zoom &in",
        "zoom-in",
        ("+", "=", "Ctrl++"),
        "view.zoom_in",
        "View",
        "Enlarge the picture, up to 64 times.",
    ),
    ActionSpec(
        "zoom-out",
        "Zoom &out",
        "zoom-out",
        ("-", "Ctrl+-"),
        "view.zoom_out",
        "View",
        "Shrink the picture, down to a twentieth.",
    ),
    ActionSpec(
        "transform",
        "Tr&ansform",
        "transform",
        ("M",),
        "view.transform",
        "View",
        "Move, rotate and scale the picture with handles.",
        "transform",
        checkable=True,
    ),
    ActionSpec(
        "layer",
        "Show la&yer",
        "layers",
        ("L",),
        "view.layer",
        "View",
        "Switch between the picture and the last chosen layer.",
        "model",
        checkable=True,
    ),
    ActionSpec(
        "before",
        "&Before",
        "undo",
        ("B",),
        "view.before",
        "View",
        "Hold to see the picture before the current gesture or the last step.",
        "model",
        checkable=True,
        starts_section=True,
    ),
    ActionSpec(
        "compare",
        "Compare t&wo",
        "compare",
        ("C",),
        "view.compare",
        "View",
        "Compare two selected kept pictures, one with the picture, or the pictures before and after the last step.",
        "model",
    ),
    ActionSpec(
        "workspace-explore",
        "E&xplore",
        "",
        ("Ctrl+1",),
        "view.workspace_explore",
        "View",
        "Show the workspace for finding pictures: latent, sliders, mix, history.",
        checkable=True,
        group="workspace",
        starts_section=True,
    ),
    ActionSpec(
        "workspace-animate",
        "Animat&e",
        "",
        ("Ctrl+2",),
        "view.workspace_animate",
        "View",
        "Show the workspace for moving pictures: timeline, sliders, latent.",
        checkable=True,
        group="workspace",
    ),
    ActionSpec(
        "workspace-measure",
        "&Measure",
        "",
        ("Ctrl+3",),
        "view.workspace_measure",
        "View",
        "Show the workspace for kernels: all their figures, roofline, layers.",
        checkable=True,
        group="workspace",
    ),
    ActionSpec(
        "panels",
        "S&how panels",
        "",
        ("P",),
        "view.panels",
        "View",
        "Show all panels, or hide them to enlarge the picture.",
        checkable=True,
        starts_section=True,
    ),
    ActionSpec(
        "picture-alone",
        "&Picture alone",
        "",
        ("F11",),
        "view.picture_alone",
        "View",
        "Show the picture in full screen; Escape leaves.",
        checkable=True,
    ),
    ActionSpec(
        "next-panel",
        "&Next panel",
        "",
        ("F6",),
        "view.next_panel",
        "View",
        "Move the keyboard focus to the next panel.",
    ),
    ActionSpec(
        "previous-panel",
        "Pre&vious panel",
        "",
        ("Shift+F6",),
        "view.previous_panel",
        "View",
        "Focus the previous panel.",
    ),
    ActionSpec(
        "theme-system",
        "&System theme",
        "",
        ("Ctrl+Alt+S",),
        "preferences.theme_system",
        "View",
        "Follow the system's dark or light theme.",
        checkable=True,
        group="theme",
        starts_section=True,
    ),
    ActionSpec(
        "theme-dark",
        "&Dark theme",
        "",
        ("Ctrl+Alt+D",),
        "preferences.theme_dark",
        "View",
        "Be dark.",
        checkable=True,
        group="theme",
    ),
    ActionSpec(
        "theme-light",
        "&Light theme",
        "",
        ("Ctrl+Alt+L",),
        "preferences.theme_light",
        "View",
        "Be light.",
        checkable=True,
        group="theme",
    ),
    ActionSpec(
        "reset-layout",
        "&Reset layout",
        "docks",
        ("Ctrl+Shift+R",),
        "view.reset_layout",
        "View",
        "Reset the panels to their first layout.",
        starts_section=True,
    ),
    ActionSpec(
        "copy-steps",
        "&Copy steps as CSV",
        "copy",
        ("Ctrl+Alt+C",),
        "model.copy_steps",
        "View",
        "Copy the table of the performance panel, all columns, for a spreadsheet.",
        "picture",
        starts_section=True,
    ),
    ActionSpec(
        "save-trace",
        "Save &trace…",
        "trace",
        ("Ctrl+Alt+T",),
        "model.save_trace",
        "View",
        "Save the frames and kernels of the last seconds as a Chrome trace.",
        "picture",
    ),
    ActionSpec(
        "recent",
        "&Recent models",
        "recent",
        ("Ctrl+R",),
        "model.show_recent",
        "Model",
        "Choose a recent model.",
    ),
    ActionSpec(
        "bundled",
        "Open the &bundled model",
        "model",
        ("Ctrl+B",),
        "files.open_bundled",
        "Model",
        "Open the model that ships with the program.",
    ),
    ActionSpec(
        "inspect",
        "&Inspect…",
        "inspect",
        ("Ctrl+I",),
        "model.inspect",
        "Model",
        "Show all details of the model file.",
        "model",
        starts_section=True,
    ),
    ActionSpec(
        "find-directions",
        "&Find directions…",
        "find",
        ("Ctrl+D",),
        "model.find_directions",
        "Model",
        "Find directions for the sliders: PCA, SeFa, or from kept pictures.",
        "model",
    ),
    ActionSpec(
        "tune",
        "&Tune for this GPU…",
        "",
        ("Ctrl+Alt+U",),
        "model.tune",
        "Model",
        "Find the fastest way to run each convolution on this GPU; needs a GPU that renders.",
        "gpu",
        starts_section=True,
        button="Tune…",
    ),
    ActionSpec(
        "keep-picture",
        "&Keep the picture here",
        "",
        ("I",),
        "play.keep_picture",
        "Play",
        "Make a key of the whole picture at the playhead of the timeline.",
        "model",
    ),
    ActionSpec(
        "play",
        "&Play",
        "play",
        ("Ctrl+Space",),
        "play.play",
        "Play",
        "Play the timeline in exact time, or pause; in the timeline, Space does it too.",
        "model",
        checkable=True,
    ),
    ActionSpec(
        "record",
        "R&ecord",
        "record",
        ("Ctrl+Shift+Space",),
        "play.record",
        "Play",
        "Play, and turn what you move into keys; each gesture is one step of undo.",
        "model",
        checkable=True,
    ),
    ActionSpec(
        "next-frame",
        "&Next frame",
        "",
        (".",),
        "play.next_frame",
        "Play",
        "Move the playhead by one frame.",
        "model",
    ),
    ActionSpec(
        "previous-frame",
        "Pre&vious frame",
        "",
        (",",),
        "play.previous_frame",
        "Play",
        "Move the playhead back by one frame.",
        "model",
    ),
    ActionSpec(
        "drift",
        "&Drift",
        "",
        ("D",),
        "edit.drift",
        "Play",
        "Move over the seed plane automatically.",
        "model",
        checkable=True,
        starts_section=True,
    ),
    ActionSpec(
        "glide",
        "&Flick glides on",
        "",
        ("G",),
        "preferences.glide",
        "Play",
        "After a flick, keep moving until you click.",
        checkable=True,
    ),
    ActionSpec(
        "random",
        "&Random seed",
        "random",
        ("R",),
        "edit.random_seed",
        "Play",
        "Jump to a random seed.",
        "model",
        starts_section=True,
    ),
    ActionSpec(
        "tour", "&Tour", "info", ("Ctrl+F1",), "help.show_tour", "Help", "Show the hints of the first start again."
    ),
    ActionSpec(
        "shortcuts", "&Shortcuts", "keyboard", ("F1", "?"), "help.show_shortcuts", "Help", "List every shortcut."
    ),
    ActionSpec(
        "report",
        "Copy &report",
        "report",
        ("Ctrl+Shift+C",),
        "help.copy_report",
        "Help",
        "Copy versions, model, device and messages for a bug report.",
    ),
    ActionSpec(
        "log-folder",
        "Show &log file",
        "open",
        ("Ctrl+Shift+L",),
        "help.show_log_folder",
        "Help",
        "Open the folder of {log_path}.",
    ),
    ActionSpec(
        "about",
        "&About Latent Loom",
        "about",
        ("Shift+F1",),
        "help.show_about",
        "Help",
        "Show version and licence.",
        starts_section=True,
    ),
)
