"""Texts about a model for the panel and the details dialog: pure functions."""

from __future__ import annotations

from gpu_backend import ModelFacts, printable


def size_text(nbytes: int) -> str:
    """Return a readable file size: "346 KB", "118.4 MB", "1.02 GB"."""
    if nbytes < 1_000_000:
        return f"{max(1, round(nbytes / 1000))} KB"
    if nbytes < 1_000_000_000:
        return f"{nbytes / 1e6:.1f} MB"
    return f"{nbytes / 1e9:.2f} GB"


def count_text(count: int) -> str:
    """Return a readable count: "8.7 M", "512 k", "940"."""
    if count >= 1_000_000:
        return f"{count / 1e6:.1f} M"
    return f"{count / 1000:.0f} k" if count >= 1000 else str(count)


def plural(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun: "1 row", "14 rows"."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def summary(facts: ModelFacts, is_bundled: bool) -> str:
    """Return the two lines below a model's name."""
    first = [
        "bundled" if is_bundled else "",
        facts.family,
        f"{facts.resolution} × {facts.resolution}",
        size_text(facts.nbytes),
    ]
    second = [
        f"{count_text(facts.parameters)} parameters",
        plural(facts.num_ws, "row"),
        plural(facts.c_dim, "class", "classes") if facts.c_dim else "no classes",
    ]
    return "\n".join(" · ".join(part for part in line if part) for line in (first, second))


def safety_summary(facts: ModelFacts) -> str:
    """Return one line about the file's pickle imports and the parts that were ignored."""
    imports = plural(len(facts.names_requested), "import")
    if not facts.names_requested and not facts.ignored:
        return "no imports requested"
    return f"{imports} requested · {plural(len(facts.ignored), 'part')} ignored"


def safety_details(facts: ModelFacts) -> str:
    """Return the names in the file's pickle imports and the ignored parts, one per line."""
    lines = []
    if facts.names_requested:
        lines += ["Names in the file, none imported:", *(f"  {printable(name)}" for name in facts.names_requested)]
    if facts.ignored:
        lines += ["Ignored:", *(f"  {printable(part)}" for part in facts.ignored)]
    return "\n".join(lines)


def all_facts(facts: ModelFacts) -> list[tuple[str, str]]:
    """Return all facts as (name, text), in display order."""
    clamp = "none" if facts.conv_clamp is None else f"{facts.conv_clamp:g}"
    return [
        ("Name", printable(facts.name)),
        ("File", printable(facts.path)),
        ("Size", f"{size_text(facts.nbytes)} ({facts.nbytes:,} bytes)"),
        ("SHA-256", facts.model_id),
        ("Container", facts.container),
        ("Family", f"{facts.family}, {facts.architecture}"),
        ("Conventions", facts.flavour),
        ("Resolution", f"{facts.resolution} × {facts.resolution}, {plural(facts.img_channels, 'channel')}"),
        ("Rows of w", f"{facts.num_ws} of {facts.w_dim}"),
        ("z", str(facts.z_dim)),
        ("Classes", _classes(facts)),
        ("Mapping layers", str(facts.mapping_layers)),
        ("Parameters", f"{facts.parameters:,}"),
        ("Clamp", clamp),
        ("Half precision", ", ".join(facts.fp16_layers) or "no layer"),
        ("Noise layers", ", ".join(facts.noise_layers) or "none"),
        ("Transform", "moves, turns and scales" if facts.has_transform else "none"),
        ("Drafts", ", ".join(f"{side} × {side}" for side in facts.draft_resolutions) or "none"),
        ("Named directions", ", ".join(map(printable, facts.named_directions)) or "none"),
        ("Names requested", "\n".join(map(printable, facts.names_requested)) or "none"),
        ("Ignored", "\n".join(map(printable, facts.ignored)) or "nothing"),
        ("Warnings", "\n".join(map(printable, facts.warnings)) or "none"),
    ]


def _classes(facts: ModelFacts) -> str:
    count = str(facts.c_dim) if facts.c_dim else "none"
    return f"{count}, with names from {printable(facts.class_file)}" if facts.class_file else count


def loading_text(stage: str, share: float) -> str:
    """Return the loading progress: "Reading 42 %"."""
    return f"{stage} {100 * share:.0f} %" if 0 < share < 1 else f"{stage}…"
