"""One step of training: both networks, their regularisers, the moving average - and all state that a resume needs.

Nothing in a step waits for the host, so a GPU always has work queued: losses go into `Figures`, p of the augmentation
and the mean path length stay on the device.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler

from gpu_backend.training.augmentation import AdaptiveChance, augmented
from gpu_backend.training.ema import ema_beta, follow
from gpu_backend.training.figures import Figures
from gpu_backend.training.losses import fake_loss, generator_loss, real_loss
from gpu_backend.training.networks.discriminator import Discriminator
from gpu_backend.training.networks.generator import Generator
from gpu_backend.training.networks.shape import NetworkShape
from gpu_backend.training.options import TrainOptions
from gpu_backend.training.processes import Processes
from gpu_backend.training.regularisers import PathLength, lazy_correction, path_lengths, r1_penalty

G_LOSS, D_LOSS, R1, PATH = "the generator's loss", "the discriminator's loss", "the R1 penalty", "the path penalty"
G_NORM, D_NORM = "the norm of the generator's gradient", "the norm of the discriminator's gradient"
SIGN = "the mean sign of real logits"

_BETAS = (0.0, 0.99)
_PATH_SHRINK = 2
_SEED_STRIDE = 1_000_003
_PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


Network = TypeVar("Network", bound=nn.Module)


class Training:
    """The networks and everything that changes with them.

    Parameters
    ----------
    options
        Checked ones.

    Attributes
    ----------
    step, pictures_seen
        Steps done, and real pictures shown by all processes together.
    ema
        The moving average of the generator.
    """

    def __init__(self, options: TrainOptions, processes: Processes) -> None:
        self.options, self.processes = options, processes
        self.device = processes.device
        usual = "bf16" if self.device.type == "cuda" else "fp32"
        self.low = _PRECISIONS[usual if options.precision == "auto" else options.precision]
        self.step = self.pictures_seen = 0
        shape = NetworkShape(
            options.resolution,
            options.channel_base,
            options.channel_max,
            options.z_dim,
            options.w_dim,
            options.mapping_layers,
        )
        if self.device.type == "cuda":
            torch.backends.cudnn.benchmark = True  # shapes stay the same, so trying pays
        torch.manual_seed(options.seed)
        self.generator = _placed(Generator(shape.spec()), self.device)
        self.discriminator = _placed(Discriminator(shape), self.device)
        self.ema = copy.deepcopy(self.generator).eval().requires_grad_(False)
        torch.manual_seed(options.seed + processes.rank * _SEED_STRIDE)
        self._synthesise: Callable[..., Tensor] = self.generator.synthesis
        self._judge: Callable[..., Tensor] = self.discriminator
        if options.compile:
            self._synthesise = torch.compile(self.generator.synthesis)
            self._judge = torch.compile(self.discriminator)
        self._g_parameters = list(self.generator.parameters())
        self._d_parameters = list(self.discriminator.parameters())
        self._g_adam = self._adam(self._g_parameters, options.path_every if options.path_weight else 0)
        self._d_adam = self._adam(self._d_parameters, options.r1_every if options.r1_weight else 0)
        scaled = self.low == torch.float16
        self._g_scaler = GradScaler(self.device.type, enabled=scaled)
        self._d_scaler = GradScaler(self.device.type, enabled=scaled)
        self._path = PathLength(self.device)
        self.chance = AdaptiveChance(options.augment_target, options.augment_kimg, self.device)
        self.figures = Figures(frozenset({G_NORM, D_NORM, R1, PATH}) if scaled else frozenset())

    @property
    def share(self) -> int:
        """Pictures a step in this process."""
        return self.options.batch // self.processes.count

    def run_step(self, pictures: Tensor) -> None:
        """Do a step with real pictures, (share, 3, R, R) uint8 on the device."""
        options, number = self.options, self.step
        real = pictures.to(torch.float32, memory_format=self._format) / 127.5 - 1.0
        if options.mirror:
            turned = torch.rand(len(real), 1, 1, 1, device=self.device) < 0.5
            real = torch.where(turned, real.flip(3), real)
        self._train_generator()
        if options.path_weight and number % options.path_every == 0:
            self._regularise_generator()
        self._train_discriminator(real)
        if options.r1_weight and number % options.r1_every == 0:
            self._regularise_discriminator(real)
        self.step += 1
        self.pictures_seen += options.batch
        beta = ema_beta(options.batch, self.pictures_seen, options.ema_half_life, options.ema_ramp)
        follow(self.ema, self.generator, beta)
        if options.augment and self.step % AdaptiveChance.EVERY == 0:
            signs = self.processes.sum(self.chance.signs.clone())
            self.chance.change(options.batch * AdaptiveChance.EVERY, signs)

    def state(self) -> dict[str, Any]:
        """Return everything that the next step depends on, as tensors and plain values."""
        generators = {"cpu": torch.get_rng_state()}
        if self.device.type == "cuda":
            generators["cuda"] = torch.cuda.get_rng_state(self.device)
        return {
            "step": self.step,
            "pictures_seen": self.pictures_seen,
            "generator": self.generator.state_dict(),
            "discriminator": self.discriminator.state_dict(),
            "ema": self.ema.state_dict(),
            "g_adam": self._g_adam.state_dict(),
            "d_adam": self._d_adam.state_dict(),
            "g_scaler": self._g_scaler.state_dict(),
            "d_scaler": self._d_scaler.state_dict(),
            "path_mean": self._path.mean,
            "augment_p": self.chance.p,
            "augment_signs": self.chance.signs,
            "random": self.processes.gather(generators),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state. With another number of processes, new random numbers are drawn; the rest is the same."""
        self.step, self.pictures_seen = state["step"], state["pictures_seen"]
        for name in ("generator", "discriminator", "ema"):
            getattr(self, name).load_state_dict(state[name])
        for adam, saved in ((self._g_adam, state["g_adam"]), (self._d_adam, state["d_adam"])):
            rates = [(group["lr"], group["betas"]) for group in adam.param_groups]
            adam.load_state_dict(saved)
            for group, (rate, betas) in zip(adam.param_groups, rates, strict=True):
                group["lr"], group["betas"] = rate, betas  # what is asked for now, not what was
        for scaler, saved in ((self._g_scaler, state["g_scaler"]), (self._d_scaler, state["d_scaler"])):
            if saved and scaler.is_enabled():
                scaler.load_state_dict(saved)
        self._path.mean = state["path_mean"].to(self.device)
        self.chance.p = state["augment_p"].to(self.device)
        self.chance.signs = state["augment_signs"].to(self.device)
        if len(state["random"]) == self.processes.count:
            own = state["random"][self.processes.rank]
            torch.set_rng_state(own["cpu"].cpu())
            if "cuda" in own and self.device.type == "cuda":
                torch.cuda.set_rng_state(own["cuda"].cpu(), self.device)

    def _train_generator(self) -> None:
        self.generator.requires_grad_(True)
        self.discriminator.requires_grad_(False)
        parts = self.options.accumulate
        for _ in range(parts):
            image = self._synthesise(self._rows(self.share // parts), "random", self.low)
            loss = generator_loss(self._judge(self._changed(image), self.low))
            self._note(G_LOSS, loss)
            torch.autograd.backward(self._g_scaler.scale(loss / parts))
        self._apply(self._g_adam, self._g_scaler, self._g_parameters, G_NORM)

    def _regularise_generator(self) -> None:
        options = self.options
        part = max(1, self.share // options.accumulate // _PATH_SHRINK)
        scale = self._g_scaler.get_scale() if self._g_scaler.is_enabled() else 1.0
        ws = self._rows(part)
        image = self.generator.synthesis(ws, "random", self.low)
        penalty = self._path.penalty(path_lengths(image, ws, torch.randn_like(image), scale))
        self._note(PATH, penalty)
        torch.autograd.backward(self._g_scaler.scale(penalty * (options.path_weight * options.path_every)))
        self._path.mean = self.processes.sum(self._path.mean.clone()) / self.processes.count
        self._apply(self._g_adam, self._g_scaler, self._g_parameters, G_NORM)

    def _train_discriminator(self, real: Tensor) -> None:
        self.generator.requires_grad_(False)
        self.discriminator.requires_grad_(True)
        parts = self.options.accumulate
        for part in real.chunk(parts):
            with torch.no_grad():
                image = self._synthesise(self._rows(len(part), follow_average=True), "random", self.low)
                image, shown = self._changed(image), self._changed(part)
            of_fake = fake_loss(self._judge(image, self.low))
            torch.autograd.backward(self._d_scaler.scale(of_fake / parts))
            logits = self._judge(shown, self.low)
            of_real = real_loss(logits)
            torch.autograd.backward(self._d_scaler.scale(of_real / parts))
            self.chance.see(logits)
            self._note(D_LOSS, of_fake.detach() + of_real.detach())
            self._note(SIGN, logits.detach().sign().mean())
        self._apply(self._d_adam, self._d_scaler, self._d_parameters, D_NORM)

    def _regularise_discriminator(self, real: Tensor) -> None:
        """R1 on what the discriminator sees: with augmentation, that is the changed pictures."""
        options = self.options
        scale = self._d_scaler.get_scale() if self._d_scaler.is_enabled() else 1.0
        for part in real.chunk(options.accumulate):
            shown = self._changed(part).detach().requires_grad_(True)
            penalty = r1_penalty(shown, self.discriminator(shown, self.low), scale).mean()
            self._note(R1, penalty)
            weight = 0.5 * options.r1_weight * options.r1_every / options.accumulate
            torch.autograd.backward(self._d_scaler.scale(penalty * weight))
        self._apply(self._d_adam, self._d_scaler, self._d_parameters, D_NORM)

    def _apply(
        self, adam: torch.optim.Optimizer, scaler: GradScaler, parameters: list[nn.Parameter], norm: str
    ) -> None:
        self.processes.average_gradients(parameters)
        scaler.unscale_(adam)
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        self._note(norm, nn.utils.get_total_norm(gradients))
        scaler.step(adam)
        scaler.update()
        adam.zero_grad(set_to_none=True)

    def _rows(self, count: int, *, follow_average: bool = False) -> Tensor:
        """Return rows of w, (count, num_ws, w_dim): some of them from two latents, cut at a random row (mixing)."""
        spec = self.generator.spec
        w = self.generator.mapping(torch.randn(count, spec.mapping.z_dim, device=self.device))
        if follow_average:
            self.generator.mapping.follow(w)
        rows: Tensor = w[:, None].expand(-1, spec.num_ws, -1)
        if self.options.mixing == 0:
            return rows
        other = self.generator.mapping(torch.randn(count, spec.mapping.z_dim, device=self.device))
        cut = torch.randint(1, spec.num_ws, (count, 1), device=self.device)
        is_mixed = torch.rand(count, 1, device=self.device) < self.options.mixing
        is_other = is_mixed & (torch.arange(spec.num_ws, device=self.device) >= cut)
        return torch.where(is_other[:, :, None], other[:, None], rows)

    def _note(self, name: str, value: Tensor) -> None:
        """Keep a figure of the step at hand; steps count from 1."""
        self.figures.add(self.step + 1, name, value)

    def _changed(self, pictures: Tensor) -> Tensor:
        return augmented(pictures, self.chance.p) if self.options.augment else pictures

    def _adam(self, parameters: list[nn.Parameter], every: int) -> torch.optim.Adam:
        rate, betas = lazy_correction(self.options.learning_rate, _BETAS, every)
        return torch.optim.Adam(parameters, rate, betas, eps=1e-8, fused=self.device.type == "cuda")

    @property
    def _format(self) -> torch.memory_format:
        return torch.channels_last if self.device.type == "cuda" else torch.contiguous_format


def _placed(network: Network, device: torch.device) -> Network:
    """Move a network to its device; a GPU convolves fastest with channels last."""
    if device.type == "cuda":
        for parameter in network.parameters():
            if parameter.ndim == 4:
                parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    return network.to(device)
