"""A GPU's driver, called through cuda.bindings: one context, one stream, and one beside it for copies.

Arguments are laid out once at binding instead of at every launch, and events may be recorded inside a captured graph.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import cuda.bindings.driver as cuda
from numpy.typing import NDArray

from gpu_backend.cuda.driver.arguments import PackedArguments, sizes_of
from gpu_backend.cuda.driver.interface import Event, Graph, LoadedKernel
from gpu_backend.cuda.errors import KernelError, driver_error
from gpu_backend.cuda.schedule import TensorMap
from gpu_backend.errors import DeviceError, DeviceLostError, DeviceMemoryError
from gpu_backend.ops.kernels.recipe import KernelRecipe

_NOT_FOR_THIS_GPU = frozenset(
    {
        "CUDA_ERROR_INVALID_IMAGE",
        "CUDA_ERROR_NO_BINARY_FOR_GPU",
        "CUDA_ERROR_INVALID_SOURCE",
        "CUDA_ERROR_NOT_FOUND",
        "CUDA_ERROR_INVALID_VALUE",
        "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
        "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
        "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED",
    }
)
_SWIZZLES = {
    32: cuda.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_32B,
    64: cuda.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_64B,
    128: cuda.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
}
"""By bytes of a box's channels: the order of 16-byte groups in its rows, as `swizzle` of parts/tensor_core.cuh."""
_NUMBERS = {
    1: cuda.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_UINT8,
    2: cuda.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
    4: cuda.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
}
_ATTRIBUTE = cuda.CUfunction_attribute
_EARLY_STARTS = 9
"""Compute capability from which on a kernel may start while the one before it ends."""

_EXTERNAL = int(cuda.CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL)


class GpuDriver:
    """Implements `gpu_backend.cuda.driver.interface.Driver` for the GPU of that number. The probe has found it.

    The context is the process's own for that GPU; it stays until the process ends, so that pictures in pinned memory
    outlive this object.
    """

    def __init__(self, index: int) -> None:
        self._lost: DeviceLostError | None = None
        self._capturing = False
        device = self._ask(cuda.cuDeviceGet(index), "starting")
        self._context = self._ask(cuda.cuDevicePrimaryCtxRetain(device), "starting")
        self.enter()
        optin = cuda.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
        self._shared_nbytes = int(self._ask(cuda.cuDeviceGetAttribute(optin, device), "starting"))
        major = cuda.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
        self._starts_early = int(self._ask(cuda.cuDeviceGetAttribute(major, device), "starting")) >= _EARLY_STARTS
        flags = int(cuda.CUstream_flags.CU_STREAM_NON_BLOCKING)
        self._stream: Any = self._ask(cuda.cuStreamCreate(flags), "starting")
        self._beside: Any = self._ask(cuda.cuStreamCreate(flags), "starting")

    @property
    def context(self) -> int:
        """Handle of the context."""
        return int(self._context)

    def enter(self) -> None:
        """Let the calling thread use the GPU."""
        if self._lost is not None:
            raise DeviceLostError(self._lost.sentence, self._lost.details)
        self._ask(cuda.cuCtxSetCurrent(self._context), "starting")

    def close(self) -> None:
        """Free the streams. May be called twice."""
        if self._stream is not None:
            self._quietly(lambda: cuda.cuStreamDestroy(self._stream))
            self._quietly(lambda: cuda.cuStreamDestroy(self._beside))
            self._stream = self._beside = None

    @contextlib.contextmanager
    def on_stream(self, stream: int) -> Iterator[None]:
        """Enqueue meanwhile on a stream of another library."""
        own, self._stream = self._stream, cuda.CUstream(stream)
        try:
            yield
        finally:
            self._stream = own

    def reserve(self, nbytes: int) -> int:
        """Memory on the device."""
        return int(self._ask(cuda.cuMemAlloc(max(nbytes, 1)), f"{_megabytes(nbytes)} of memory"))

    def release(self, address: int) -> None:
        """Free memory on the device."""
        self._quietly(lambda: cuda.cuMemFree(address))

    def reserve_pinned(self, nbytes: int) -> int:
        """Memory of the host that every context can copy from and to."""
        flags = int(cuda.CU_MEMHOSTALLOC_PORTABLE)
        return int(self._ask(cuda.cuMemHostAlloc(max(nbytes, 1), flags), f"{_megabytes(nbytes)} of pinned memory"))

    def release_pinned(self, address: int) -> None:
        """Free it, on any thread."""
        self._quietly(lambda: cuda.cuMemFreeHost(address))

    def is_idle(self) -> bool:
        """Whether the streams have nothing to do."""
        streams = () if self._stream is None else (self._stream, self._beside)
        return all(str(cuda.cuStreamQuery(stream)[0].name) != "CUDA_ERROR_NOT_READY" for stream in streams)

    def copy_in(self, target: int, source: int, nbytes: int) -> None:
        """Copy from pinned memory to the device."""
        self._ask(cuda.cuMemcpyHtoDAsync(target, source, nbytes, self._stream), "copying")

    def copy_out(self, target: int, source: int, nbytes: int) -> None:
        """Copy from the device to pinned memory."""
        self._ask(cuda.cuMemcpyDtoHAsync(target, source, nbytes, self._stream), "copying")

    def copy_out_beside(self, target: int, source: int, nbytes: int, after: Event, done: Event) -> None:
        """Copy from the device to pinned memory on the second stream."""
        self._ask(cuda.cuStreamWaitEvent(self._beside, after, 0), "copying")
        self._ask(cuda.cuMemcpyDtoHAsync(target, source, nbytes, self._beside), "copying")
        self._ask(cuda.cuEventRecord(done, self._beside), "copying")

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy on the device."""
        self._ask(cuda.cuMemcpyDtoDAsync(target, source, nbytes, self._stream), "copying")

    def upload(self, target: int, array: NDArray[Any]) -> None:
        """Copy an array to the device and wait."""
        if not array.flags.c_contiguous:
            raise ValueError("only an array without gaps can be uploaded")
        self.copy_in(target, array.ctypes.data, array.nbytes)
        self._ask(cuda.cuStreamSynchronize(self._stream), "copying")

    def download(self, array: NDArray[Any], source: int) -> None:
        """Fill an array from the device and wait."""
        if not array.flags.c_contiguous:
            raise ValueError("only an array without gaps can be filled")
        self.copy_out(array.ctypes.data, source, array.nbytes)
        self._ask(cuda.cuStreamSynchronize(self._stream), "computing")

    def zero(self, address: int, nbytes: int) -> None:
        """Fill memory of the device with zeros."""
        self._ask(cuda.cuMemsetD8Async(address, 0, nbytes, self._stream), "clearing memory")

    def load(self, cubin: bytes, recipe: KernelRecipe) -> LoadedKernel:
        """Put a kernel on the device."""
        entry = recipe.stem
        image = ctypes.create_string_buffer(cubin, len(cubin))
        module = self._ask_kernel(cuda.cuModuleLoadData(ctypes.addressof(image)), entry)
        try:
            function = self._ask_kernel(cuda.cuModuleGetFunction(module, entry.encode()), entry)
            # The driver loads lazily, which would fall into a capture or into the first frame.
            self._ask_kernel(cuda.cuFuncLoad(function), entry)
            self._check_parameters(function, recipe)
            static = self._attribute(function, "CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES", entry)
            is_cooperative = ("COOPERATIVE", "1") in recipe.defines
            most = _ATTRIBUTE.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._ask_kernel(cuda.cuFuncSetAttribute(function, most, self._shared_nbytes - static), entry)
            return LoadedKernel(
                function=function,
                module=module,
                entry=entry,
                registers=self._attribute(function, "CU_FUNC_ATTRIBUTE_NUM_REGS", entry),
                shared_nbytes=static,
                local_nbytes=self._attribute(function, "CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES", entry),
                is_cooperative=is_cooperative,
                starts_early=self._starts_early and recipe.waits_by_itself and not is_cooperative,
            )
        except DeviceError:
            self._quietly(lambda: cuda.cuModuleUnload(module))
            raise

    def unload(self, kernel: LoadedKernel) -> None:
        """Take it off again."""
        self._quietly(lambda: cuda.cuModuleUnload(kernel.module))

    def blocks_per_multiprocessor(self, kernel: LoadedKernel, threads: int, shared_nbytes: int) -> int:
        """Blocks that fit a multiprocessor at once."""
        answer = cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(kernel.function, threads, shared_nbytes)
        return int(self._ask_kernel(answer, kernel.entry))

    def tensor_map(self, address: int, described: TensorMap) -> bytes:
        """Return a tensor map of activations at an address."""
        channels, columns, rows, pictures = described.extents
        pixel = described.itemsize * channels
        row = described.itemsize * described.row or pixel * columns
        picture = row * rows
        extents: tuple[int, ...] = described.extents
        strides: tuple[int, ...] = (pixel, row, picture)
        steps: tuple[int, ...] = (1, described.step, described.step, 1)
        box: tuple[int, ...] = (described.box[0], *(described.step * (size - 1) + 1 for size in described.box[1:]), 1)
        if described.splits_columns:
            extents = channels, columns // 2, 2, rows, pictures
            strides = 2 * pixel, pixel, row, picture
            box = described.box[0], described.box[1], 2, described.box[2], 1
            steps = (1,) * len(box)
        encode, sizes = (
            (cuda.cuTensorMapEncodeIm2col, (*map(list, described.bounds), box[0], box[2]))
            if described.bounds
            else (cuda.cuTensorMapEncodeTiled, ([cuda.cuuint32_t(extent) for extent in box],))
        )
        answer = encode(
            _NUMBERS[described.itemsize],
            len(extents),
            address,
            [cuda.cuuint64_t(extent) for extent in extents],
            [cuda.cuuint64_t(stride) for stride in strides],
            *sizes,
            [cuda.cuuint32_t(step) for step in steps],
            cuda.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            _SWIZZLES[described.itemsize * described.box[0]],
            cuda.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            cuda.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
        return b"".join(int(word).to_bytes(8, "little") for word in self._ask(answer, "describing memory").opaque)

    def launch(
        self,
        kernel: LoadedKernel,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_nbytes: int,
        arguments: PackedArguments,
        *,
        follows_kernel: bool = False,
    ) -> None:
        """Start a kernel."""
        place = *grid, *block, shared_nbytes, self._stream, arguments.address
        if kernel.is_cooperative:
            answer = cuda.cuLaunchCooperativeKernel(kernel.function, *place)
        elif kernel.starts_early and follows_kernel and self._starts_early:
            answer = cuda.cuLaunchKernelEx(self._early(*place[:-1]), kernel.function, arguments.address, 0)
            if int(answer[0]) and not self._capturing:
                self._starts_early = False
                answer = cuda.cuLaunchKernel(kernel.function, *place, 0)
        else:
            answer = cuda.cuLaunchKernel(kernel.function, *place, 0)
        if int(answer[0]):
            self._ask_kernel(answer, kernel.entry)

    def capture(self, work: Callable[[], None]) -> Graph:
        """Capture what `work` enqueues; where a driver refuses early starts in a graph, a second time without them."""
        try:
            return self._captured(work)
        except (DeviceLostError, DeviceMemoryError):
            raise
        except DeviceError:
            if not self._starts_early:
                raise
            self._starts_early = False
            return self._captured(work)

    def _captured(self, work: Callable[[], None]) -> Graph:
        # Relaxed: other threads may free a picture's pinned memory meanwhile.
        mode = cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        self._ask(cuda.cuStreamBeginCapture(self._stream, mode), "capturing a graph")
        self._capturing = True
        try:
            work()
        except BaseException:
            # The stream takes no other work before its capture has ended, well or badly.
            with contextlib.suppress(Exception):
                outcome, broken = cuda.cuStreamEndCapture(self._stream)
                if not int(outcome):
                    cuda.cuGraphDestroy(broken)
            raise
        finally:
            self._capturing = False
        graph = self._ask(cuda.cuStreamEndCapture(self._stream), "capturing a graph")
        try:
            executable = self._ask(cuda.cuGraphInstantiate(graph, 0), "making a graph")
        finally:
            self._quietly(lambda: cuda.cuGraphDestroy(graph))
        try:
            self._ask(cuda.cuGraphUpload(executable, self._stream), "making a graph")
        except DeviceError:
            self.release_graph(executable)
            raise
        return Graph(executable)

    def replay(self, graph: Graph) -> None:
        """Do what was captured."""
        self._ask(cuda.cuGraphLaunch(graph, self._stream), "computing")

    def release_graph(self, graph: Graph) -> None:
        """Free a graph."""
        self._quietly(lambda: cuda.cuGraphExecDestroy(graph))

    def make_event(self) -> Event:
        """An event that can be timed."""
        return Event(self._ask(cuda.cuEventCreate(int(cuda.CUevent_flags.CU_EVENT_DEFAULT)), "making an event"))

    def record(self, event: Event) -> None:
        """Record the event after the work enqueued so far."""
        # Without the flag a capture stores the order that an event implies, and no event.
        flags = _EXTERNAL if self._capturing else 0
        self._ask(cuda.cuEventRecordWithFlags(event, self._stream, flags), "computing")

    def wait(self, event: Event) -> None:
        """Wait for the event's latest record."""
        self._ask(cuda.cuEventSynchronize(event), "computing")

    def elapsed_ms(self, start: Event, end: Event) -> float:
        """Time between two events that have happened."""
        return float(self._ask(cuda.cuEventElapsedTime(start, end), "timing"))

    def release_event(self, event: Event) -> None:
        """Free an event."""
        self._quietly(lambda: cuda.cuEventDestroy(event))

    def _early(self, *place: Any) -> Any:
        """Return where and how large a kernel is launched, for one that may start while the one before it ends."""
        config = cuda.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = place[:3]
        config.blockDimX, config.blockDimY, config.blockDimZ = place[3:6]
        config.sharedMemBytes, config.hStream = place[6:]
        attribute = cuda.CUlaunchAttribute()
        attribute.id = cuda.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        attribute.value.programmaticStreamSerializationAllowed = 1
        config.attrs, config.numAttrs = [attribute], 1
        return config

    def _attribute(self, function: Any, name: str, entry: str) -> int:
        return int(self._ask_kernel(cuda.cuFuncGetAttribute(getattr(_ATTRIBUTE, name), function), entry))

    def _check_parameters(self, function: Any, recipe: KernelRecipe) -> None:
        """Compare number and sizes of a kernel's parameters with what launches give."""
        expected = sizes_of(recipe.parameters)
        found: list[int] = []
        with contextlib.suppress(RuntimeError):  # bindings raise it where a driver before CUDA 12.4 has no such call
            for index in range(len(expected) + 1):
                outcome, _, nbytes = cuda.cuFuncGetParamInfo(function, index)
                if int(outcome):
                    # An index behind the last parameter is invalid; any other outcome says nothing of the kernel.
                    is_end = str(outcome.name) == "CUDA_ERROR_INVALID_VALUE"
                    break
                found.append(int(nbytes))
            else:
                is_end = True
            if is_end and tuple(found) != expected:
                raise KernelError(
                    f"The kernel {recipe.title} has other parameters than its launches give.",
                    f"bytes: {found}, expected {list(expected)}",
                    "its parameters are not those of its source",
                )

    def _ask(self, answer: tuple[Any, ...], doing: str) -> Any:
        if int(answer[0]):
            error = driver_error(str(answer[0].name), doing)
            if isinstance(error, DeviceLostError):
                self._lost = DeviceLostError(error.sentence, error.details)
            raise error
        return answer[1] if len(answer) > 1 else None

    def _ask_kernel(self, answer: tuple[Any, ...], entry: str) -> Any:
        word = str(answer[0].name)
        if word in _NOT_FOR_THIS_GPU:
            sentence = f"The GPU's driver refuses the kernel {entry} ({word}); update the driver."
            raise KernelError(sentence, word, f"the driver refuses it ({word})")
        return self._ask(answer, f"loading the kernel {entry}")

    def _quietly(self, free: Callable[[], Any]) -> None:
        """Free something; what a lost device cannot free is gone with the process.

        The collector may come here in the middle of work for another GPU, which stays the thread's own.
        """
        with contextlib.suppress(Exception):
            is_ours = not int(cuda.cuCtxPushCurrent(self._context)[0])
            try:
                free()
            finally:
                if is_ours:
                    cuda.cuCtxPopCurrent()


def _megabytes(nbytes: int) -> str:
    return f"{nbytes / 2**20:.0f} MB"
