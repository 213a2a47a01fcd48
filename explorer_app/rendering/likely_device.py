"""Which device the first pictures may come from, as far as preferences tell before devices are looked for. No Qt.

A start asks before it imports the window, so that torch's libraries or a driver load beside these imports.
"""

from __future__ import annotations

import os

from explorer_app.rendering.device_choice import DeviceChoice, precision_of
from explorer_app.rendering.renderer_like import PROCESSOR_ID
from explorer_app.settings import Settings
from gpu_backend import driver_is_installed

RENDERED_LAST = "devices.rendered"
"""Key of `Settings.choice`: `DeviceLike.id` of the device that rendered last."""

_CORES_TO_COMPILE = 8
"""With fewer, the kernels of a first start take longer to compile than torch takes to import."""


def preferred_choice(settings: Settings, device: str = "", precision: str = "") -> DeviceChoice:
    """Return the choice of the command line, with the preferences' choice where a name is empty."""
    return DeviceChoice(device or settings.values.device, precision_of(precision or settings.values.precision))


def may_need_processor(settings: Settings, choice: DeviceChoice) -> bool:
    """Return whether the first pictures may be rendered on the CPU: unless a GPU rendered the last time."""
    return not choice.wants_gpu or settings.choice(RENDERED_LAST, PROCESSOR_ID) == PROCESSOR_ID


def may_render_on_gpu(settings: Settings, choice: DeviceChoice) -> bool:
    """Return whether the first pictures may come from a GPU: unless the CPU is chosen, or rendered the last time."""
    return choice.wants_gpu and settings.choice(RENDERED_LAST, "") != PROCESSOR_ID


def expects_gpu(settings: Settings, choice: DeviceChoice) -> bool:
    """Return whether a GPU will render the first picture although none ever did: at the first start beside a driver.

    Loads the driver's library, but does not start the driver.
    """
    return (
        choice.wants_gpu
        and not settings.choice(RENDERED_LAST, "")
        and (os.cpu_count() or 1) >= _CORES_TO_COMPILE
        and driver_is_installed()
    )
