"""Writes a model in the format of NVIDIA's tools, from facts about the format alone.

``write_nvidia_pickle(path, model, protocol=3, channels_last=True, location="cuda:0")`` and the like;
`edits` and `extra` change what is written.
"""

from __future__ import annotations

import math
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gpu_backend.model import LayerSpec, Model, StyleGAN2Spec, StyleGAN3Spec
from tests.helpers.pickle_writer import Call, Global, PersistentId, PickleWriter
from tests.helpers.stylegan3_file import stylegan3_synthesis
from tests.helpers.stylegan_xl_file import class_modules, dill_set, is_grown

Flavour = Literal["ada", "stylegan3"]
Container = Literal["pickle", "zip", "stream"]

_MAGIC = 0x1950A86A20F9469CFC6C
_STORAGES = {"float32": "FloatStorage", "float16": "HalfStorage", "float64": "DoubleStorage", "int64": "LongStorage"}
DEFAULT_TAPS = (0.125, 0.375, 0.375, 0.125)
_RECONSTRUCT = Global("torch_utils.persistence", "_reconstruct_persistent_obj")
_ORDERED = Global("collections", "OrderedDict")


class _TensorWriter:
    """Converts arrays to the calls that rebuild them, and collects data stored outside of the pickle."""

    def __init__(self, container: Container, location: str, *, channels_last: bool) -> None:
        self._container = container
        self._location = location
        self._channels_last = channels_last
        self.storages: dict[str, bytes] = {}

    def parameter(self, array: np.ndarray[Any, Any]) -> Call:
        return Call(Global("torch._utils", "_rebuild_parameter"), (self.tensor(array), False, Call(_ORDERED, ())))

    def tensor(self, array: np.ndarray[Any, Any]) -> Call:
        strides = tuple(stride // array.itemsize for stride in np.ascontiguousarray(array).strides[: array.ndim])
        data = array.tobytes()
        if self._channels_last and array.ndim == 4:
            _, inputs, height, width = array.shape
            strides = (inputs * height * width, 1, width * inputs, inputs)
            data = np.ascontiguousarray(array.transpose(0, 2, 3, 1)).tobytes()
        storage = self._storage(data, array.size, _STORAGES[array.dtype.name])
        arguments = (storage, 0, tuple(array.shape), strides, False, Call(_ORDERED, ()))
        return Call(Global("torch._utils", "_rebuild_tensor_v2"), arguments)

    def _storage(self, data: bytes, numel: int, kind: str) -> Call | PersistentId:
        key = str(len(self.storages)) if self._container == "zip" else f"{94_000_000_000_000 + len(self.storages)}"
        identity: tuple[Any, ...] = ("storage", Global("torch", kind), key, self._location, numel)
        self.storages[key] = data
        if self._container == "zip":
            return PersistentId(identity)
        if self._container == "stream":
            return PersistentId((*identity, None))
        blob = stream_head() + PickleWriter(2).dumps(PersistentId((*identity, None))) + PickleWriter(2).dumps([key])
        return Call(Global("torch.storage", "_load_from_bytes"), (blob + struct.pack("<q", numel) + data,))


def stream_head() -> bytes:
    """The three pickles at the head of an older torch stream."""
    sizes = {"short": 2, "int": 4, "long": 4}
    system = {"protocol_version": 1001, "little_endian": True, "type_sizes": sizes}
    return b"".join(PickleWriter(2).dumps(value) for value in (_MAGIC, 1001, system))


class NetworkWriter:
    """Converts a model's parts to calls; `stylegan3_file` writes StyleGAN3's layers with it."""

    def __init__(self, model: Model, tensors: _TensorWriter, flavour: Flavour, edits: Mapping[str, Any]) -> None:
        self._model = model
        self.weights = model.weights
        self.tensors = tensors
        self._is_xl = isinstance(model.spec, StyleGAN3Spec) and model.spec.family == "stylegan_xl"
        self._flavour = flavour
        self._edits = edits

    def generator(self) -> Call:
        spec = self._model.spec
        mapping = spec.mapping
        own = {"z_dim": mapping.z_dim, "c_dim": mapping.c_dim, "w_dim": spec.w_dim}
        picture = {"img_resolution": spec.resolution, "img_channels": spec.img_channels}
        if isinstance(spec, StyleGAN3Spec):
            synthesis = stylegan3_synthesis(self, spec)
        else:
            assert isinstance(spec, StyleGAN2Spec)
            synthesis = self._synthesis(spec)
        children = {"synthesis": synthesis, "mapping": self._mapping()}
        given: dict[str, Any] = {**own, **picture}
        class_name = "Generator"
        if isinstance(spec, StyleGAN3Spec) and self._is_xl and is_grown(spec):
            class_name = "SuperresGenerator"
            given = {
                "img_resolution": spec.resolution,
                "path_stem": "/home/a/stem.pkl",
                "head_layers": 7,
                "up_factor": 2,
            }
        kwargs = Call(Global("dnnlib.util", "EasyDict"), (), is_new=True, items=given)
        return self.module("", class_name, {**own, **picture, "num_ws": spec.num_ws}, modules=children, kwargs=kwargs)

    def _synthesis(self, spec: StyleGAN2Spec) -> Call:
        blocks: dict[str, list[LayerSpec]] = {}
        for layer in spec.layers:
            blocks.setdefault(layer.name.partition(".")[0], []).append(layer)
        attributes = {"w_dim": spec.w_dim, "num_ws": spec.num_ws}
        attributes |= {"img_resolution": spec.resolution, "img_channels": spec.img_channels}
        if self._flavour == "stylegan3":
            attributes["num_fp16_res"] = 0
        modules = {name: self._block(name, layers) for name, layers in blocks.items()}
        return self.module("synthesis", "SynthesisNetwork", attributes, modules=modules)

    def _mapping(self) -> Call:
        spec = self._model.spec
        mapping = spec.mapping
        modules: dict[str, Call] = {}
        inputs = mapping.z_dim
        if isinstance(spec, StyleGAN3Spec) and self._is_xl:
            modules |= class_modules(self, spec)
            inputs += mapping.embed_dim
        elif mapping.c_dim:
            modules["embed"] = self.connected("mapping.embed", "linear", 1.0, mapping.c_dim)
            inputs += mapping.embed_dim
        for index, width in enumerate(mapping.widths):
            name = f"fc{index}"
            modules[name] = self.connected(f"mapping.{name}", mapping.activation, mapping.lr_multiplier, inputs)
            inputs = width
        attributes = {
            "z_dim": mapping.z_dim,
            "c_dim": mapping.c_dim,
            "w_dim": spec.w_dim,
            "num_ws": spec.num_ws,
            "num_layers": len(mapping.widths),
            "w_avg_beta": 0.995,
        }
        return self.module("mapping", "MappingNetwork", attributes, buffers=("w_avg",), modules=modules)

    def connected(self, path: str, activation: str, rate: float, inputs: int) -> Call:
        """A fully connected layer."""
        gain = numpy_scalar(rate / math.sqrt(inputs))
        attributes = {"activation": activation, "weight_gain": gain, "bias_gain": rate}
        return self.module(path, "FullyConnectedLayer", attributes, ("weight", "bias"))

    def _block(self, name: str, layers: list[LayerSpec]) -> Call:
        spec = self._model.spec
        attributes = {
            "resolution": layers[0].resolution,
            "img_channels": spec.img_channels,
            "is_last": layers[0].resolution == spec.resolution,
            "architecture": spec.architecture,
            "use_fp16": layers[-1].use_fp16,
            "channels_last": layers[-1].use_fp16,
        }
        if self._flavour == "stylegan3":
            attributes["fused_modconv_default"] = "inference_only"
        return self.module(
            f"synthesis.{name}",
            "SynthesisBlock",
            attributes,
            ("const",) if name == "b4" else (),
            ("resample_filter",),
            modules={layer.name.rpartition(".")[2]: self._layer(layer) for layer in layers},
        )

    def _layer(self, layer: LayerSpec) -> Call:
        path = f"synthesis.{layer.name}"
        channels = {"in_channels": layer.in_channels, "out_channels": layer.out_channels}
        extra = channels if self._flavour == "stylegan3" else {}
        gain = numpy_scalar(1 / math.sqrt(layer.in_channels * layer.kernel**2))
        if layer.kind == "skip":
            attributes = {"activation": "linear", "up": 2, "down": 1, "conv_clamp": None, "weight_gain": gain}
            attributes["bias"] = None  # a bias that a layer is made without is an attribute, not a parameter
            return self.module(path, "Conv2dLayer", {**extra, **attributes}, ("weight",), ("resample_filter",))
        affine = {"affine": self.connected(f"{path}.affine", "linear", 1.0, self._model.spec.w_dim)}
        if layer.kind == "to_rgb":
            attributes = {"conv_clamp": layer.conv_clamp, "weight_gain": gain}
            return self.module(path, "ToRGBLayer", {**extra, **attributes}, ("weight", "bias"), modules=affine)
        attributes = {
            "resolution": layer.resolution,
            "up": 2 if layer.kind == "up_conv" else 1,
            "use_noise": layer.has_noise,
            "activation": layer.activation,
            "conv_clamp": layer.conv_clamp,
            "padding": 1,
        }
        parameters = ("weight", "noise_strength", "bias") if layer.has_noise else ("weight", "bias")
        buffers = ("resample_filter", "noise_const") if layer.has_noise else ("resample_filter",)
        return self.module(path, "SynthesisLayer", {**extra, **attributes}, parameters, buffers, affine)

    def module(
        self,
        path: str,
        class_name: str,
        attributes: Mapping[str, Any],
        parameters: tuple[str, ...] = (),
        buffers: tuple[str, ...] = (),
        modules: Mapping[str, Any] | None = None,
        kwargs: Any = None,
    ) -> Call:
        """A module with its tensors; missing ones are left out if their names end in _filter."""
        state: dict[str, Any] = {
            "training": self._is_xl,
            "_parameters": Call(_ORDERED, (), items={name: self._array(path, name, True) for name in parameters}),
            "_buffers": Call(_ORDERED, (), items={name: self._array(path, name, False) for name in buffers}),
            "_non_persistent_buffers_set": dill_set() if self._is_xl else set(),
            "_forward_hooks": Call(_ORDERED, ()),
            "_modules": Call(_ORDERED, (), items=dict(modules or {})),
            "_init_args": (),
            "_init_kwargs": {} if kwargs is None else kwargs,
            **attributes,
        }
        prefix = f"{path}." if path else ""
        for name, value in self._edits.items():
            if name.startswith(prefix) and "." not in name.removeprefix(prefix):
                state[name.removeprefix(prefix)] = value
        return persistent(class_name, state)

    def _array(self, path: str, name: str, is_parameter: bool) -> Any:
        full = f"{path}.{name}"
        if full in self._model.weights:
            array: np.ndarray[Any, Any] = self._model.weights[full]
        else:
            if name in ("up_filter", "down_filter"):
                return None
            assert isinstance(self._model.spec, StyleGAN2Spec)
            # Nothing reads that of conv1: the tools leave it at its default.
            taps = np.array(DEFAULT_TAPS if path.endswith(".conv1") else self._model.spec.resample_filter)
            array = (taps if len(taps) >= 8 else np.outer(taps, taps)).astype(np.float32)
        return self.tensors.parameter(array) if is_parameter else self.tensors.tensor(array)


def persistent(class_name: str, state: Any, version: int = 6, source: str = "# source\n") -> Call:
    """A network module as NVIDIA's tools pickle it."""
    meta = {"type": "class", "version": version, "module_src": source, "class_name": class_name, "state": state}
    return Call(_RECONSTRUCT, (meta,))


def numpy_scalar(value: float) -> Call:
    """A NumPy float64 scalar."""
    dtype = Call(Global("numpy", "dtype"), ("f8", False, True), state=(3, "<", None, None, None, -1, -1, 0))
    return Call(Global("numpy.core.multiarray", "scalar"), (dtype, struct.pack("<d", value)))


def foreign_discriminator() -> Call:
    """A discriminator of another library's classes, as in StyleGAN-XL's snapshots."""
    inner = Call(Global("torch.nn.modules.conv", "Conv2d"), (), state={"training": True, "_modules": {}}, is_new=True)
    state = {"_modules": {"conv": inner}, "stride": (2, 2), "act": Global("torch.nn.functional", "leaky_relu")}
    return Call(Global("pg_modules.discriminator", "ProjectedDiscriminator"), (), state=state, is_new=True)


def write_nvidia_pickle(
    path: Path,
    model: Model,
    *,
    protocol: int = 4,
    flavour: Flavour = "ada",
    container: Container = "pickle",
    channels_last: bool = False,
    location: str = "cpu",
    other: Model | None = None,
    extra: Mapping[str, Any] | None = None,
    edits: Mapping[str, Any] | None = None,
    is_bare: bool = False,
    dill_module: str = "",
) -> Path:
    """Write a snapshot and return its path.

    Parameters
    ----------
    container
        A plain pickle, a torch zip, or the older torch stream.
    channels_last
        Store convolution weights in that memory order.
    other
        A model to stand beside G_ema as G.
    extra
        More top-level entries (``{"D": foreign_discriminator()}``).
    edits
        Attributes to set or change: ``{"synthesis.b8.conv0.conv_clamp": -1.0}``.
    is_bare
        The generator itself is the value of the file, without a dict around it.
    dill_module
        The module that dill 0.3.4 takes NumPy's helpers from; empty for plain names.
    """
    tensors = _TensorWriter(container, location, channels_last=channels_last)
    value: Any = {}
    if other is not None:
        value["G"] = NetworkWriter(other, tensors, flavour, {}).generator()
    value.update(extra or {})
    value["G_ema"] = NetworkWriter(model, tensors, flavour, edits or {}).generator()
    value = value["G_ema"] if is_bare else value
    if container == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("archive/data.pkl", PickleWriter(2, dill_module=dill_module).dumps(value))
            archive.writestr("archive/byteorder", "little")
            for key, data in tensors.storages.items():
                archive.writestr(f"archive/data/{key}", data)
            archive.writestr("archive/version", "3\n")
        return path
    content = PickleWriter(protocol if container == "pickle" else 2, dill_module=dill_module).dumps(value)
    if container == "stream":
        keys = sorted(tensors.storages)
        # Every network written here holds single-precision numbers, four bytes each.
        data = b"".join(struct.pack("<q", len(tensors.storages[key]) // 4) + tensors.storages[key] for key in keys)
        content = stream_head() + content + PickleWriter(2).dumps(keys) + data
    path.write_bytes(content)
    return path
