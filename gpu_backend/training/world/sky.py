"""The sky: air that scatters sunlight, sun, moon, stars and clouds."""

import torch

from gpu_backend.training.world.factors import Setting
from gpu_backend.training.world.light import Light, rgb
from gpu_backend.training.world.noise import fractal, gradient_noise, hashed, smoothstep
from gpu_backend.training.world.view import View


def _toward(across: torch.Tensor, up: torch.Tensor, light_across: torch.Tensor, light_up: torch.Tensor) -> torch.Tensor:
    """Cosine of the angle between a view ray and a light, both as tangents."""
    dot = across * light_across + up * light_up + 1.0
    return dot * torch.rsqrt((across**2 + up**2 + 1.0) * (light_across**2 + light_up**2 + 1.0))


def air(light: Light, across: torch.Tensor, up: torch.Tensor, glow: float = 1.0) -> torch.Tensor:
    """Colour of the clear sky with the glow of sun or moon, without the disc.

    One scattering along the look (after Preetham 1999), with the sun's own path the shorter the higher one looks: that
    is what leaves the zenith blue while the horizon burns.

    Parameters
    ----------
    across, up : torch.Tensor
        Where one looks, in tangents; ``up`` from 0.
    glow : float
        How much of the halo close to the sun is there; little before land, which covers most of it.

    Returns
    -------
    torch.Tensor
        ``(n, 3, ...)`` linear.
    """
    sine = up * torch.rsqrt(across**2 + up**2 + 1.0)
    cosine = _toward(across, up, light.across, light.sun_up.clamp(min=-0.05))
    depth = light.air + light.mist
    crossed = 1.0 / (sine + 0.10)
    path = light.path * (0.06 + 0.94 * torch.exp(-sine * 5.5))
    rayleigh = 0.75 * (1.0 + cosine**2)
    forward = 0.30 + 0.10 / (1.06 - cosine) + glow * 0.011 / (1.0025 - cosine)
    scattered = (light.air * rayleigh[:, None] + light.mist * forward[:, None]) / depth
    seen = 1.0 - torch.exp(-depth * crossed[:, None])
    sunlight = torch.exp(-(light.air * 1.05 + light.mist * 0.35) * path[:, None])
    daylight = light.day[:, None] * (1.55 * scattered * seen * sunlight)
    # What was scattered twice lifts the darker half of the sky; at night it is all there is.
    twice = light.day[:, None] * 0.10 * rgb(0.5, 0.8, 1.25, sine) * (1.0 - 0.5 * sine[:, None])
    moon = _toward(across, up, light.across, light.moon_up)
    halo = glow * 0.006 / (1.004 - moon) + 0.05 / (1.12 - moon)
    dark = rgb(0.034, 0.066, 0.135, sine) * (0.75 + 0.9 * torch.exp(-sine * 4.0))[:, None]
    nightly = light.night[:, None] * (dark + halo[:, None] * rgb(0.055, 0.07, 0.095, sine))
    return (daylight + twice + nightly + 0.35 * dark) * light.tint


def _disc(cosine: torch.Tensor, radius: float, soft: float) -> torch.Tensor:
    """1 within ``radius`` of a light, in tangents."""
    angle = torch.sqrt((2.0 - 2.0 * cosine).clamp(min=1e-9))
    return smoothstep(radius + soft, radius - soft, angle)


def sky(setting: Setting, light: Light, view: View, across: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """Everything above the land, as seen through ``across`` and ``up`` (from 0); ``(n, 3, ...)`` linear."""
    clear = air(light, across, up)
    keys = setting.seeds
    soft = max(view.pitch * 1.5, 0.004)
    sun = _disc(_toward(across, up, light.across, light.sun_up), 0.024, soft) * smoothstep(-0.06, 0.0, light.sun_up)
    moon_cosine = _toward(across, up, light.across, light.moon_up)
    moon = _disc(moon_cosine, 0.034, soft)
    seas = 0.72 + 0.5 * gradient_noise((across - light.across) * 32.0, (up - light.moon_up) * 32.0, keys, 3)
    through = torch.exp(-(light.air * 0.9 + light.mist * 0.3) * light.path[:, None])
    shine = sun[:, None] * 9.0 * through + (moon * seas * light.night)[:, None] * rgb(0.95, 0.93, 0.82, across)
    column, row = (across * 26.0).floor(), (up * 26.0).floor()
    cell = column.to(torch.int32) * 131 + row.to(torch.int32)
    star_x = across * 26.0 - column - 0.1 - 0.8 * hashed(cell, keys, 4)
    star_y = up * 26.0 - row - 0.1 - 0.8 * hashed(cell, keys, 5)
    bright = (hashed(cell, keys, 6) - 0.86).clamp(min=0.0) * 7.0
    stars = bright**2 * torch.exp(-(star_x**2 + star_y**2) * 90.0) * light.night * (1.0 - moon)
    clear = clear + shine + stars[:, None] * 1.2
    # Clouds lie on a sheet overhead, so that they grow smaller towards the horizon.
    far = 1.0 / (up + 0.16)
    x, y = across * far * 0.62, far * 0.62
    x = x + 40.0 * setting.chance(2)
    footprint = view.pitch * far * far * 0.5
    bend_x = fractal(x * 0.9 + 7.0, y * 0.9, keys, 20, 2)
    bend_y = fractal(x * 0.9, y * 0.9 + 3.0, keys, 24, 2)
    x, y = x * 1.7 + 0.32 * bend_x, y * 2.3 + 0.32 * bend_y
    field = fractal(x, y, keys, 30, 5, footprint * 2.0, 0.52)
    # A second sample a step towards the light shows which side of a cloud is lit.
    stood = light.day * light.sun_up + (1.0 - light.day) * light.moon_up
    step_x, step_y = (light.across - across) * 0.28, -(stood - up) * 0.28
    lit_field = fractal(x + step_x, y + step_y, keys, 30, 3, footprint * 2.0, 0.52)
    cover = setting.cloud_cover
    edge = 0.58 - 1.05 * cover
    density = smoothstep(edge, edge + 0.42, field)
    lit = (0.5 + 1.2 * (field - lit_field)).clamp(0.0, 1.2) * (1.0 - 0.45 * smoothstep(edge + 0.1, edge + 1.1, field))
    cosine = _toward(across, up, light.across, stood)
    rim = (1.0 - density) * density * (0.35 + 0.10 / (1.05 - cosine))
    low_sun = torch.exp(-(light.air + light.mist * 0.3) * (light.path * 0.85)[:, None])
    sunlight = low_sun * (2.3 * light.day)[:, None] + rgb(0.05, 0.065, 0.10, across) * light.night[:, None]
    around = air(light, across * 0.0, up * 0.0 + 0.55)
    body = sunlight * (0.06 + 0.42 * lit + rim)[:, None] + around * 0.55
    body = body * (1.0 - 0.30 * cover)[:, None]
    # Distance reduces the contrast of clouds as it does that of mountains.
    near = smoothstep(-0.02, 0.30 + 0.25 * setting.haze, up)
    alpha = density * (0.30 + 0.65 * near)
    return clear + (body - clear) * alpha[:, None]
