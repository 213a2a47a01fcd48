"""``latentloom bench``: the time of a frame here and in PyTorch, or the rate over several GPUs."""

from __future__ import annotations

import argparse
import re
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

from explorer_app.cli.arguments import Parser, UsageError
from explorer_app.cli.console import Console
from explorer_app.exporting.formats.picture_format import FORMATS, PictureFormat
from explorer_app.messages import describe
from explorer_app.rendering.device_choice import precision_of
from gpu_backend import (
    LoomError,
    ModelFacts,
    add_bench_options,
    bench_options_of,
    date_now,
    find_commit,
    find_versions,
    names_of,
    number_above_0,
    random_model,
    read_model,
    run_bench,
    scaling_table,
    with_efficiency,
    write_safetensors,
    write_scaling,
)

_EXAMPLES = """examples:
  latentloom bench --shape ffhq1024 --out results
  latentloom bench ffhq.pkl --batch 1,8 --peers compiled --precision fp16
  latentloom bench --gpus 1,2,4,8 --shape ffhq1024 --out results
  latentloom bench --device cpu --quick"""

_USUAL_S, _QUICK_S = 20.0, 4.0
_FARM_ONLY = ("cpu_workers", "formats", "seconds", "work")


def parser() -> Parser:
    """Return the parser of this command."""
    what = "Measure this renderer beside the same network in plain PyTorch. Ctrl-C keeps what was measured."
    made = Parser("latentloom bench", what, _EXAMPLES)
    add_bench_options(made)
    farm = made.add_argument_group("measure scaling over several GPUs of this machine instead, with the extra `farm`")
    farm.add_argument(
        "--gpus", type=_counts, metavar="LIST", help="numbers of GPUs, such as 1,2,4: rates through a farm, efficiency"
    )
    farm.add_argument("--cpu-workers", type=_counts, metavar="LIST", help="numbers of workers on the CPU instead")
    farm.add_argument(
        "--formats",
        type=names_of(tuple(FORMATS), "formats"),
        metavar="LIST",
        help=f"of {', '.join(FORMATS)} (default: png,jpeg)",
    )
    farm.add_argument(
        "--seconds",
        type=number_above_0,
        metavar="S",
        help=f"of each measurement (default: {_USUAL_S:g}; {_QUICK_S:g} --quick)",
    )
    farm.add_argument("--work", type=Path, metavar="DIR", help="where frames are written and deleted (default: /tmp)")
    return made


def run(words: Sequence[str], console: Console) -> int:
    """Measure, print a table, write files, also of what was measured before Ctrl-C."""
    made = parser()
    parsed = made.parse_args(words)
    command = shlex.join((*made.prog.split(), *words))
    if parsed.gpus is not None or parsed.cpu_workers is not None:
        _over_devices(parsed, command, console)
        return 0
    for name in _FARM_ONLY:
        if getattr(parsed, name) is not None:
            raise UsageError(f"--{name.replace('_', '-')} belongs to --gpus, which was not given.")
    options = bench_options_of(parsed, command)
    if not run_bench(options, console.note, console.results):
        raise KeyboardInterrupt
    return 0


def _over_devices(parsed: argparse.Namespace, command: str, console: Console) -> None:
    """Measure a private farm of more and more workers."""
    from explorer_app.farm.benchmark import FarmBenchmark, run_farm_benchmark
    from explorer_app.farm.errors import require_farm_extra
    from explorer_app.farm.farm_model import farm_model_of
    from explorer_app.farm.local_farm import crew_of_this_machine

    if parsed.gpus is not None and parsed.cpu_workers is not None:
        raise UsageError("Give either --gpus or --cpu-workers, not both.")
    require_farm_extra()
    options = bench_options_of(parsed, command)
    counts = parsed.gpus or parsed.cpu_workers
    crew = crew_of_this_machine(None, 0) if parsed.gpus else crew_of_this_machine((), max(counts))
    if parsed.gpus and not (crew[0].visible is not None and len(crew) >= max(counts)):
        there = sum(member.visible is not None for member in crew)
        raise UsageError(f"This machine has {there} GPUs that can be used, but --gpus asks for {max(counts)}.")
    if options.shape is None and options.file is None:
        raise UsageError("Give a model FILE or --shape to render: ffhq1024, for example.")
    seconds = parsed.seconds or (_QUICK_S if options.quick else _USUAL_S)
    with tempfile.TemporaryDirectory(prefix="latentloom-bench-", dir=parsed.work) as folder:
        path = options.file
        if path is None:
            assert options.shape is not None
            path = Path(folder) / f"random-{options.shape.name.replace(':', '-')}.safetensors"
            write_safetensors(random_model(options.shape), path)
        model = read_model(path)
        facts: ModelFacts = model.facts
        work = Path(folder) / "frames"
        work.mkdir()
        wanted = FarmBenchmark(
            facts,
            farm_model_of(model),
            [crew[:count] for count in counts],
            [PictureFormat(name) for name in parsed.formats or ("png", "jpeg")],
            seconds,
            work,
            precision_of(options.precisions[0] if len(options.precisions) == 1 else None),
        )
        del model
        try:
            results = run_farm_benchmark(wanted, console.note)
        except LoomError:
            raise
        except OSError as error:
            raise UsageError(describe(error)[0]) from error
    rows = with_efficiency(results.measured)
    run_facts = {
        "date": date_now(),
        "command": options.command,
        "commit": options.commit or find_commit(),
        "device": results.devices[0] if results.devices else "",
        "devices": list(results.devices),
        "network": facts.name,
        "seconds": seconds,
        "threads": crew[0].threads,
        "killed": results.killed,
        "versions": find_versions(),
    }
    lines = scaling_table(rows)
    try:
        if options.out is not None:
            files, problem = write_scaling(rows, run_facts, options.out)
            if problem:
                lines.append(f"skipped: plot: {problem}")
            console.note(f"written: {', '.join(str(file) for file in files)}")
    finally:  # a full disk does not lose what was measured
        console.results(lines)


def _counts(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"[1-9][0-9]{0,2}(,[1-9][0-9]{0,2})*", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"expected numbers of GPUs such as 1,2,4, not {text[:40]!r}")
    return tuple(sorted({int(part) for part in text.split(",")}))
