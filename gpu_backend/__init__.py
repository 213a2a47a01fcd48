"""Public interface of the backend: model files in, frames out.

Stages of a frame::

    read_model(path)            file -> arrays and a spec; no code in the file runs              model/
    Renderer(model)             picks a device and says why; builds a Plan for each PlanKey      device.py, plan/
    renderer.render(request)    recipe -> w rows -> the plan's steps -> B, G, R, X bytes         renderer/, cuda/, cpu/

In a program::

    with open_renderer("model.pkl") as renderer:                         # or Renderer(read_model(path), device="cuda")
        rows = renderer.map(z, psi=0.7)                                   # (n, z_dim) -> (n, num_ws, w_dim) float32
        images = renderer.synthesize(rows)                                # (n, channels, height, width), about -1..1
        frame = renderer.render(RenderRequest(renderer.facts.model_id))   # a Recipe of seeds -> bytes; frame.to_rgb()

Errors of files, devices and requests are `LoomError`: one sentence with what was expected, what was found and what to
do. An argument of a wrong type is a TypeError.

Callers import from this package only, not from its modules. Importing it loads neither torch nor a driver and creates
no folder: each name is imported from its module on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_backend.lazy_names import lazy_names

if TYPE_CHECKING:
    from gpu_backend.argument_types import (
        names_of as names_of,
        number_above_0 as number_above_0,
        whole_number as whole_number,
    )
    from gpu_backend.bench.command import run_bench as run_bench
    from gpu_backend.bench.device_rate import DeviceRate as DeviceRate
    from gpu_backend.bench.ladder import Rung as Rung, RungResult as RungResult, gains_of as gains_of
    from gpu_backend.bench.ladder_run import LadderRun as LadderRun, LadderShare as LadderShare
    from gpu_backend.bench.options import add_bench_options as add_bench_options, bench_options_of as bench_options_of
    from gpu_backend.bench.random_model import random_model as random_model
    from gpu_backend.bench.scaling import (
        ScalingRow as ScalingRow,
        scaling_table as scaling_table,
        with_efficiency as with_efficiency,
        write_scaling as write_scaling,
    )
    from gpu_backend.bench.shapes import shape_of as shape_of
    from gpu_backend.channel_maps import ChannelMaps as ChannelMaps
    from gpu_backend.cpu.torch_import import import_torch as import_torch, preload_library as preload_library
    from gpu_backend.cuda.tuning.prediction import PredictionQuality as PredictionQuality
    from gpu_backend.cuda.tuning.tile_search import TileFinding as TileFinding, TileProgress as TileProgress
    from gpu_backend.cuda.tuning.tile_tuning import TileTuning as TileTuning
    from gpu_backend.cuda.tuning.tuning_run import TuningRun as TuningRun, TuningShare as TuningShare
    from gpu_backend.device import (
        DeviceFacts as DeviceFacts,
        Roofline as Roofline,
        device_process_nbytes as device_process_nbytes,
        find_devices as find_devices,
    )
    from gpu_backend.diagnosis import (
        Diagnosis as Diagnosis,
        GpuDiagnosis as GpuDiagnosis,
        KernelDiagnosis as KernelDiagnosis,
        PlainLayer as PlainLayer,
        diagnose as diagnose,
        fused_plan as fused_plan,
    )
    from gpu_backend.driver_library import (
        driver_is_installed as driver_is_installed,
        preload_driver as preload_driver,
    )
    from gpu_backend.errors import (
        FULL_DISK as FULL_DISK,
        CancelledError as CancelledError,
        DeviceError as DeviceError,
        DeviceLostError as DeviceLostError,
        DeviceMemoryError as DeviceMemoryError,
        LoomError as LoomError,
        ModelFileError as ModelFileError,
        RequestError as RequestError,
        UnsupportedModelError as UnsupportedModelError,
    )
    from gpu_backend.frame import (
        Frame as Frame,
        FrameTimings as FrameTimings,
        KernelCounters as KernelCounters,
        KernelFacts as KernelFacts,
        StepTime as StepTime,
        TappedLayer as TappedLayer,
        ValueStatistics as ValueStatistics,
    )
    from gpu_backend.garbage import without_collections as without_collections
    from gpu_backend.gradients.drag import DragOptimizer as DragOptimizer
    from gpu_backend.gradients.drag_maker import DragMaker as DragMaker
    from gpu_backend.gradients.drag_settings import (
        DragReport as DragReport,
        DragSettings as DragSettings,
        Handle as Handle,
        HandleState as HandleState,
        default_drag_rows as default_drag_rows,
    )
    from gpu_backend.gradients.encoder import PictureEncoder as PictureEncoder
    from gpu_backend.gradients.found_style import FoundStyle as FoundStyle
    from gpu_backend.gradients.latents import (
        LatentStatistics as LatentStatistics,
        latent_statistics as latent_statistics,
    )
    from gpu_backend.gradients.network import DifferentiableNetwork as DifferentiableNetwork
    from gpu_backend.gradients.opening import (
        TORCH_DEVICES as TORCH_DEVICES,
        open_encoder as open_encoder,
        open_features as open_features,
        open_gradients as open_gradients,
    )
    from gpu_backend.gradients.photo import (
        LEAST_PHOTO_PX as LEAST_PHOTO_PX,
        check_photo_size as check_photo_size,
        open_photo as open_photo,
        read_photo as read_photo,
    )
    from gpu_backend.gradients.picture_features import PictureFeatures as PictureFeatures
    from gpu_backend.gradients.projection import Projection as Projection, pictures_together as pictures_together
    from gpu_backend.gradients.projection_settings import (
        PHOTO_SUFFIXES as PHOTO_SUFFIXES,
        PROJECTION_START_S as PROJECTION_START_S,
        Crop as Crop,
        ProjectionReport as ProjectionReport,
        ProjectionSettings as ProjectionSettings,
    )
    from gpu_backend.gradients.style_search import StyleSearch as StyleSearch
    from gpu_backend.latent.combining import combined_latent as combined_latent
    from gpu_backend.latent.directions import Directions as Directions
    from gpu_backend.latent.flattening import flat_latent as flat_latent
    from gpu_backend.latent.paths import (
        LatentPath as LatentPath,
        PathKind as PathKind,
        blend_between as blend_between,
        is_on_seed as is_on_seed,
        path_blends as path_blends,
        weighted_blend as weighted_blend,
    )
    from gpu_backend.latent.plane import plane_point as plane_point, plane_seed as plane_seed
    from gpu_backend.latent.seeds import seed_class as seed_class
    from gpu_backend.layer_statistics import LayerStatistics as LayerStatistics, log_spectrum as log_spectrum
    from gpu_backend.lazy_names import LazyModule as LazyModule
    from gpu_backend.limits import (
        LABELS_LIMITS as LABELS_LIMITS,
        MANIFEST_LIMITS as MANIFEST_LIMITS,
        MAX_BENDS as MAX_BENDS,
        MAX_BLENDS as MAX_BLENDS,
        MAX_ITEMS as MAX_ITEMS,
        MAX_KEPT as MAX_KEPT,
        MAX_STEPS as MAX_STEPS,
        MAX_STORED_NBYTES as MAX_STORED_NBYTES,
        MAX_STYLE_OFFSETS as MAX_STYLE_OFFSETS,
        MAX_TEXT as MAX_TEXT,
        PICTURE_LIMITS as PICTURE_LIMITS,
        SESSION_LIMITS as SESSION_LIMITS,
        SETTINGS_LIMITS as SETTINGS_LIMITS,
        FileLimits as FileLimits,
        LimitError as LimitError,
        RecipeBudget as RecipeBudget,
        check_json_size as check_json_size,
        is_regular_file as is_regular_file,
        parse_json as parse_json,
        read_member as read_member,
        read_regular_file as read_regular_file,
    )
    from gpu_backend.model import (
        LayerFacts as LayerFacts,
        Model as Model,
        ModelFacts as ModelFacts,
        NamedDirections as NamedDirections,
        direction_path as direction_path,
        inspect_model as inspect_model,
        joined_directions as joined_directions,
        read_directions as read_directions,
        read_model as read_model,
        write_directions as write_directions,
        write_safetensors as write_safetensors,
    )
    from gpu_backend.model.encoder_file import (
        EncoderFile as EncoderFile,
        encoder_path as encoder_path,
        read_encoder as read_encoder,
        write_encoder as write_encoder,
    )
    from gpu_backend.model.latent_file import (
        LATENT_SUFFIXES as LATENT_SUFFIXES,
        read_latent as read_latent,
        read_latents as read_latents,
        stored_latent as stored_latent,
        write_latent as write_latent,
        write_latents as write_latents,
    )
    from gpu_backend.model.tuned_file import (
        Base as Base,
        changed_model as changed_model,
        tuned_path as tuned_path,
        write_tuned as write_tuned,
    )
    from gpu_backend.model_directions import named_part as named_part
    from gpu_backend.ops.kernels.conv_tile import ConvShape as ConvShape, ConvTile as ConvTile
    from gpu_backend.picture_file import PictureFileError as PictureFileError
    from gpu_backend.picture_mask import (
        MASK_SIDE as MASK_SIDE,
        MaskError as MaskError,
        PictureMask as PictureMask,
        layer_mask as layer_mask,
        mask_from_text as mask_from_text,
        mask_to_text as mask_to_text,
    )
    from gpu_backend.plain_text import (
        printable as printable,
        printable_lines as printable_lines,
        printable_sentence as printable_sentence,
    )
    from gpu_backend.process_memory import process_nbytes as process_nbytes
    from gpu_backend.processes import machine_tag as machine_tag, process_is_running as process_is_running
    from gpu_backend.quick_dataclass import dataclass as dataclass
    from gpu_backend.recipe import (
        BEND_REST as BEND_REST,
        NO_EDITS as NO_EDITS,
        SEED_COUNT as SEED_COUNT,
        Arc as Arc,
        Bend as Bend,
        BendKind as BendKind,
        DirectionAmount as DirectionAmount,
        Latent as Latent,
        LocalEdits as LocalEdits,
        MaskedBlend as MaskedBlend,
        MixSource as MixSource,
        Noise as Noise,
        NoiseMode as NoiseMode,
        Point as Point,
        Recipe as Recipe,
        RowRange as RowRange,
        StoredLatent as StoredLatent,
        StyleOffset as StyleOffset,
        Tap as Tap,
        Transform as Transform,
        Truncation as Truncation,
    )
    from gpu_backend.renderer import Renderer as Renderer, open_renderer as open_renderer
    from gpu_backend.renderer.comparison import Comparison as Comparison
    from gpu_backend.renderer.kernel_checks import KernelChecks as KernelChecks, kernel_checks as kernel_checks
    from gpu_backend.renderer.kernels import (
        compile_kernels as compile_kernels,
        kernels_ready as kernels_ready,
        prepare_device as prepare_device,
    )
    from gpu_backend.renderer.memory import MemoryFacts as MemoryFacts
    from gpu_backend.renderer.options import RenderOptions as RenderOptions
    from gpu_backend.renderer.pending_frame import PendingFrame as PendingFrame
    from gpu_backend.request import (
        RenderRequest as RenderRequest,
        StoredPart as StoredPart,
        spend_blend as spend_blend,
        spend_latent as spend_latent,
        stored_in as stored_in,
        stored_in_edits as stored_in_edits,
    )
    from gpu_backend.request_json import (
        bend_from_json as bend_from_json,
        edits_from_json as edits_from_json,
        edits_to_json as edits_to_json,
        latent_from_json as latent_from_json,
        latent_to_json as latent_to_json,
        mask_of as mask_of,
        noise_from_json as noise_from_json,
        noise_to_json as noise_to_json,
        recipe_from_json as recipe_from_json,
        recipe_to_json as recipe_to_json,
        request_from_json as request_from_json,
        request_to_json as request_to_json,
        stored_from_json as stored_from_json,
        stored_to_json as stored_to_json,
        tap_from_json as tap_from_json,
        tap_to_json as tap_to_json,
    )
    from gpu_backend.run_facts import date_now as date_now, find_commit as find_commit, find_versions as find_versions
    from gpu_backend.torch_import import TorchError as TorchError
    from gpu_backend.training.arguments import (
        add_train_options as add_train_options,
        train_request_of as train_request_of,
    )
    from gpu_backend.training.benchmark.command import run_train_bench as run_train_bench
    from gpu_backend.training.benchmark.options import (
        add_train_bench_options as add_train_bench_options,
        train_bench_options_of as train_bench_options_of,
    )
    from gpu_backend.training.command import run_training as run_training
    from gpu_backend.training.directions.command import run_directions as run_directions
    from gpu_backend.training.directions.options import (
        add_direction_options as add_direction_options,
        direction_options_of as direction_options_of,
    )
    from gpu_backend.training.directions.search import (
        DirectionFinder as DirectionFinder,
        DirectionSearch as DirectionSearch,
        MapsLatents as MapsLatents,
        free_example_name as free_example_name,
        free_set_name as free_set_name,
    )
    from gpu_backend.training.encoder import EncoderTraining as EncoderTraining, RendersSamples as RendersSamples
    from gpu_backend.training.encoder_opening import open_encoder_training as open_encoder_training
    from gpu_backend.training.encoder_settings import (
        EncoderReport as EncoderReport,
        EncoderSettings as EncoderSettings,
    )
    from gpu_backend.training.photo_tuning import PhotoTuning as PhotoTuning, TunedProjection as TunedProjection
    from gpu_backend.training.progress import duration as duration
    from gpu_backend.training.request import TrainOutcome as TrainOutcome, TrainRequest as TrainRequest
    from gpu_backend.whole_file import (
        MAX_NAME_NBYTES as MAX_NAME_NBYTES,
        Disk as Disk,
        FileGroup as FileGroup,
        check_same as check_same,
        part_name as part_name,
        remove_leftovers as remove_leftovers,
        write_part as write_part,
        write_whole as write_whole,
    )

_HOMES = {
    "argument_types": ("names_of", "number_above_0", "whole_number"),
    "bench.command": ("run_bench",),
    "bench.device_rate": ("DeviceRate",),
    "bench.ladder": ("RungResult", "Rung", "gains_of"),
    "bench.ladder_run": ("LadderRun", "LadderShare"),
    "bench.options": ("add_bench_options", "bench_options_of"),
    "bench.random_model": ("random_model",),
    "bench.scaling": ("ScalingRow", "scaling_table", "with_efficiency", "write_scaling"),
    "bench.shapes": ("shape_of",),
    "channel_maps": ("ChannelMaps",),
    "cpu.torch_import": ("import_torch", "preload_library"),
    "cuda.tuning.prediction": ("PredictionQuality",),
    "cuda.tuning.tile_search": ("TileFinding", "TileProgress"),
    "cuda.tuning.tile_tuning": ("TileTuning",),
    "cuda.tuning.tuning_run": ("TuningRun", "TuningShare"),
    "device": ("DeviceFacts", "Roofline", "device_process_nbytes", "find_devices"),
    "diagnosis": ("Diagnosis", "GpuDiagnosis", "KernelDiagnosis", "PlainLayer", "diagnose", "fused_plan"),
    "driver_library": ("driver_is_installed", "preload_driver"),
    "errors": (
        "FULL_DISK",
        "CancelledError",
        "DeviceError",
        "DeviceLostError",
        "DeviceMemoryError",
        "LoomError",
        "ModelFileError",
        "RequestError",
        "UnsupportedModelError",
    ),
    "frame": ("Frame", "FrameTimings", "KernelCounters", "KernelFacts", "StepTime", "TappedLayer", "ValueStatistics"),
    "garbage": ("without_collections",),
    "latent.combining": ("combined_latent",),
    "gradients.drag": ("DragOptimizer",),
    "gradients.drag_maker": ("DragMaker",),
    "gradients.drag_settings": ("DragReport", "DragSettings", "Handle", "HandleState", "default_drag_rows"),
    "gradients.encoder": ("PictureEncoder",),
    "gradients.found_style": ("FoundStyle",),
    "gradients.style_search": ("StyleSearch",),
    "gradients.latents": ("LatentStatistics", "latent_statistics"),
    "gradients.network": ("DifferentiableNetwork",),
    "gradients.opening": ("TORCH_DEVICES", "open_encoder", "open_features", "open_gradients"),
    "gradients.photo": ("LEAST_PHOTO_PX", "check_photo_size", "open_photo", "read_photo"),
    "gradients.picture_features": ("PictureFeatures",),
    "gradients.projection": ("Projection", "pictures_together"),
    "gradients.projection_settings": (
        "PHOTO_SUFFIXES",
        "PROJECTION_START_S",
        "Crop",
        "ProjectionReport",
        "ProjectionSettings",
    ),
    "latent.directions": ("Directions",),
    "latent.flattening": ("flat_latent",),
    "latent.paths": ("LatentPath", "PathKind", "blend_between", "is_on_seed", "path_blends", "weighted_blend"),
    "latent.plane": ("plane_point", "plane_seed"),
    "latent.seeds": ("seed_class",),
    "layer_statistics": ("LayerStatistics", "log_spectrum"),
    "lazy_names": ("LazyModule",),
    "limits": (
        "LABELS_LIMITS",
        "MANIFEST_LIMITS",
        "MAX_BENDS",
        "MAX_BLENDS",
        "MAX_ITEMS",
        "MAX_KEPT",
        "MAX_STEPS",
        "MAX_STORED_NBYTES",
        "MAX_STYLE_OFFSETS",
        "MAX_TEXT",
        "PICTURE_LIMITS",
        "SESSION_LIMITS",
        "SETTINGS_LIMITS",
        "FileLimits",
        "LimitError",
        "RecipeBudget",
        "check_json_size",
        "parse_json",
        "is_regular_file",
        "read_member",
        "read_regular_file",
    ),
    "model": (
        "LayerFacts",
        "Model",
        "ModelFacts",
        "NamedDirections",
        "direction_path",
        "inspect_model",
        "joined_directions",
        "read_directions",
        "read_model",
        "write_directions",
        "write_safetensors",
    ),
    "model.encoder_file": ("EncoderFile", "encoder_path", "read_encoder", "write_encoder"),
    "model.latent_file": (
        "LATENT_SUFFIXES",
        "read_latent",
        "read_latents",
        "stored_latent",
        "write_latent",
        "write_latents",
    ),
    "model.tuned_file": ("Base", "changed_model", "tuned_path", "write_tuned"),
    "model_directions": ("named_part",),
    "ops.kernels.conv_tile": ("ConvShape", "ConvTile"),
    "quick_dataclass": ("dataclass",),
    "picture_file": ("PictureFileError",),
    "picture_mask": ("MASK_SIDE", "MaskError", "PictureMask", "layer_mask", "mask_from_text", "mask_to_text"),
    "plain_text": ("printable", "printable_lines", "printable_sentence"),
    "process_memory": ("process_nbytes",),
    "processes": ("machine_tag", "process_is_running"),
    "recipe": (
        "BEND_REST",
        "NO_EDITS",
        "SEED_COUNT",
        "Arc",
        "Bend",
        "BendKind",
        "DirectionAmount",
        "Latent",
        "LocalEdits",
        "MaskedBlend",
        "MixSource",
        "Noise",
        "NoiseMode",
        "Point",
        "Recipe",
        "RowRange",
        "StoredLatent",
        "StyleOffset",
        "Tap",
        "Transform",
        "Truncation",
    ),
    "renderer": ("Renderer", "open_renderer"),
    "renderer.comparison": ("Comparison",),
    "renderer.kernel_checks": ("KernelChecks", "kernel_checks"),
    "renderer.kernels": ("compile_kernels", "kernels_ready", "prepare_device"),
    "renderer.memory": ("MemoryFacts",),
    "renderer.options": ("RenderOptions",),
    "renderer.pending_frame": ("PendingFrame",),
    "request": (
        "RenderRequest",
        "StoredPart",
        "spend_blend",
        "spend_latent",
        "stored_in",
        "stored_in_edits",
    ),
    "request_json": (
        "bend_from_json",
        "edits_from_json",
        "edits_to_json",
        "latent_from_json",
        "latent_to_json",
        "mask_of",
        "noise_from_json",
        "noise_to_json",
        "recipe_from_json",
        "recipe_to_json",
        "request_from_json",
        "request_to_json",
        "stored_from_json",
        "stored_to_json",
        "tap_from_json",
        "tap_to_json",
    ),
    "torch_import": ("TorchError",),
    "run_facts": ("date_now", "find_commit", "find_versions"),
    "training.arguments": ("add_train_options", "train_request_of"),
    "training.benchmark.command": ("run_train_bench",),
    "training.benchmark.options": ("add_train_bench_options", "train_bench_options_of"),
    "training.command": ("run_training",),
    "training.directions.command": ("run_directions",),
    "training.directions.options": ("add_direction_options", "direction_options_of"),
    "training.directions.search": (
        "DirectionFinder",
        "DirectionSearch",
        "MapsLatents",
        "free_example_name",
        "free_set_name",
    ),
    "training.encoder": ("EncoderTraining", "RendersSamples"),
    "training.encoder_opening": ("open_encoder_training",),
    "training.encoder_settings": ("EncoderReport", "EncoderSettings"),
    "training.photo_tuning": ("PhotoTuning", "TunedProjection"),
    "training.progress": ("duration",),
    "training.request": ("TrainOutcome", "TrainRequest"),
    "whole_file": (
        *("MAX_NAME_NBYTES", "Disk", "FileGroup", "check_same", "part_name", "remove_leftovers", "write_part"),
        "write_whole",
    ),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)

__all__ = sorted(name for names in _HOMES.values() for name in names)  # noqa: PLE0605 - _HOMES lists them
