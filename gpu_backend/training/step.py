"""Training step: both networks, their regularisers, the moving average, and all state that a resume needs.

Stages of a step::

    real pictures        bytes into persistent memory                     real_pictures.py
    generator            loss; path penalty every few steps               generator_gradients.py
    discriminator        loss; R1 every few steps                         discriminator_gradients.py
    each of these four   gradients, all-reduce, Adam                      update.py, optimiser.py, gradient_buffer.py
    moving average, probability of augmentation                           ema.py, augmentation.py

On a GPU each update is captured as a CUDA graph after warm-up runs, then replayed (replay.py). No part of a step
synchronises with the host, so the GPU always has queued work: metrics, the probability of augmentation and the mean
path length stay on the device.
"""

from __future__ import annotations

import copy
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from gpu_backend.training.augmentation import AdaptiveChance, augmented
from gpu_backend.training.discriminator_gradients import DiscriminatorGradients
from gpu_backend.training.ema import ema_beta, follow
from gpu_backend.training.generator_gradients import GeneratorGradients
from gpu_backend.training.gradient_buffer import GradientBuffer
from gpu_backend.training.kernels.launcher import kernels_problem
from gpu_backend.training.latents import Latents
from gpu_backend.training.methods import StepMethods
from gpu_backend.training.metrics import D_NORM, G_NORM, PATH, R1, Metrics
from gpu_backend.training.network_pair import Make, NetworkPair, make_networks, network_shape
from gpu_backend.training.optimiser import Optimiser
from gpu_backend.training.options import TrainOptions
from gpu_backend.training.processes import Processes
from gpu_backend.training.real_pictures import RealPictures
from gpu_backend.training.replay import CudaRecorder, Recorder
from gpu_backend.training.update import Update


class Training:
    """The networks and everything that changes with them.

    Parameters
    ----------
    options
        Checked ones.
    methods
        Execution options; None for the fastest ones of the device.
    recorder
        Captures updates; None for CUDA graphs if the methods enable them.
    make
        Creates the networks.

    Attributes
    ----------
    step, pictures_seen
        Steps done, and real pictures shown by all processes together.
    ema
        The moving average of the generator.
    """

    def __init__(
        self,
        options: TrainOptions,
        processes: Processes,
        methods: StepMethods | None = None,
        recorder: Recorder | None = None,
        make: Make = make_networks,
    ) -> None:
        self.options, self.processes = options, processes
        self.device = device = processes.device
        self.methods = methods = methods or StepMethods.of(options, device)
        self.step = self.pictures_seen = 0
        if device.type == "cuda":
            methods.set_for_all()
        self._recorder = recorder or (CudaRecorder(device) if methods.graphs else None)
        torch.manual_seed(options.seed)
        networks = NetworkPair(network_shape(options), methods, device, make)
        self.generator, self.discriminator = networks.generator, networks.discriminator
        self.ema = copy.deepcopy(self.generator).eval().requires_grad_(False)
        torch.manual_seed(processes.own_seed(options.seed))

        self.chance = AdaptiveChance(options.augment_target, options.augment_kimg, device)
        scaled = methods.low == torch.float16
        self.metrics = Metrics(frozenset({G_NORM, D_NORM, R1, PATH}) if scaled else frozenset())
        self._real = RealPictures(
            self.share, options.resolution, device, methods.memory_format, self._recorder, mirror=options.mirror
        )
        self._path_every = options.path_every if options.path_weight else 0
        self._r1_every = options.r1_every if options.r1_weight else 0
        rate = options.learning_rate
        self._g_optimiser = Optimiser(self.generator, rate, self._path_every, methods, device, G_NORM)
        self._d_optimiser = Optimiser(self.discriminator, rate, self._r1_every, methods, device, D_NORM)
        latents = Latents(self.generator, options.mixing, device)
        of_generator = GeneratorGradients(networks, latents, self._g_optimiser, options, self.share, self._changed)
        of_discriminator = DiscriminatorGradients(
            networks, latents, self._d_optimiser, options, self._real.values, self.chance, self._changed
        )
        self._path_mean = of_generator.path_length.mean
        is_alone = processes.count == 1
        g_buffer = None if is_alone else GradientBuffer(self._g_optimiser.parameters)
        d_buffer = None if is_alone else GradientBuffer(self._d_optimiser.parameters)
        of_g = (self._g_optimiser, processes, g_buffer, self._recorder)
        of_d = (self._d_optimiser, processes, d_buffer, self._recorder)
        self._train_generator = Update(of_generator.of_loss, *of_g)
        self._regularise_generator = Update(of_generator.of_path, *of_g, shared=(self._path_mean,))
        self._train_discriminator = Update(of_discriminator.of_loss, *of_d)
        self._regularise_discriminator = Update(of_discriminator.of_r1, *of_d)

    @property
    def share(self) -> int:
        """Pictures a step in this process."""
        return self.options.batch // self.processes.count

    @property
    def is_settled(self) -> bool:
        """Whether all updates are captured, or never will be, so that step times are representative."""
        return self._real.is_settled and all(update.is_settled for update, every in self._updates() if every)

    @property
    def kernels_problem(self) -> str:
        """Why our own kernels are not used on a GPU; empty if they are, or there is no GPU."""
        return kernels_problem(self.device.index, self.methods.low) if self.device.type == "cuda" else ""

    def run_step(self, pictures: Tensor) -> None:
        """Run a step with real pictures, (share, 3, R, R) uint8."""
        options = self.options
        with self._recorder.beside() if self._recorder is not None else nullcontext():
            self._real.show(pictures)
            for update, every in self._updates():
                if every and self.step % every == 0:
                    self.metrics.add(self.step + 1, update.run())  # displayed steps start at 1
            self.step += 1
            self.pictures_seen += options.batch
            beta = ema_beta(options.batch, self.pictures_seen, options.ema_half_life, options.ema_ramp)
            follow(self.ema, self.generator, beta)
            if options.augment and self.step % AdaptiveChance.EVERY == 0:
                self.processes.sum(self.chance.signs)
                self.chance.change(options.batch * AdaptiveChance.EVERY)

    def state(self) -> dict[str, Any]:
        """Return everything that the next step depends on, as tensors and plain values."""
        generators = {"cpu": torch.get_rng_state()}
        if self.device.type == "cuda":
            generators["cuda"] = torch.cuda.get_rng_state(self.device)
        g_adam, g_scaler = self._g_optimiser.state()
        d_adam, d_scaler = self._d_optimiser.state()
        return {
            "step": self.step,
            "pictures_seen": self.pictures_seen,
            "generator": self.generator.state_dict(),
            "discriminator": self.discriminator.state_dict(),
            "ema": self.ema.state_dict(),
            "g_adam": g_adam,
            "d_adam": d_adam,
            "g_scaler": g_scaler,
            "d_scaler": d_scaler,
            "path_mean": self._path_mean,
            "augment_p": self.chance.p,
            "augment_signs": self.chance.signs,
            "random": self.processes.gather(generators),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore a state. With another number of processes the random number generators are seeded again."""
        self.step, self.pictures_seen = state["step"], state["pictures_seen"]
        for name in ("generator", "discriminator", "ema"):
            getattr(self, name).load_state_dict(state[name])
        self._g_optimiser.load_state(state["g_adam"], state["g_scaler"])
        self._d_optimiser.load_state(state["d_adam"], state["d_scaler"])
        self._path_mean.copy_(state["path_mean"])
        self.chance.p.copy_(state["augment_p"])
        self.chance.signs.copy_(state["augment_signs"])
        for update, _ in self._updates():
            update.forget()
        if len(state["random"]) == self.processes.count:
            own = state["random"][self.processes.rank]
            torch.set_rng_state(own["cpu"].cpu())
            if "cuda" in own and self.device.type == "cuda":
                torch.cuda.set_rng_state(own["cuda"].cpu(), self.device)

    def _updates(self) -> tuple[tuple[Update, int], ...]:
        """Return the updates in the order of a step, each with its interval in steps, 0 for never."""
        return (
            (self._train_generator, 1),
            (self._regularise_generator, self._path_every),
            (self._train_discriminator, 1),
            (self._regularise_discriminator, self._r1_every),
        )

    def _changed(self, pictures: Tensor) -> Tensor:
        return augmented(pictures, self.chance.p) if self.options.augment else pictures
