"""A small U-Net learns to predict noise, and schedulers step back from it."""

import torch
from diffusers import AutoencoderKL, DDIMScheduler, DDPMScheduler, EulerDiscreteScheduler, UNet2DConditionModel, UNet2DModel

from ..helpers import data, fill, numbers, train


def run():
    net = fill(UNet2DModel(sample_size=8, in_channels=1, out_channels=1, block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4,
                           down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D")))
    x, noise, times = data(2, 1, 8, 8), data(2, 1, 8, 8, seed=1), torch.tensor([10, 500])
    schedule = DDPMScheduler(num_train_timesteps=1000)
    noisy = schedule.add_noise(x, noise, times)
    losses = train(net, lambda: (net(noisy, times).sample - noise).square().mean(), lr=0.01)
    result = {"losses": losses, "noisy": numbers(noisy)}
    for Scheduler in (DDIMScheduler, EulerDiscreteScheduler):
        steps, sample = Scheduler(), noise.clone()
        steps.set_timesteps(4)
        for t in steps.timesteps:
            with torch.no_grad():
                sample = steps.step(net(steps.scale_model_input(sample, t), t).sample, t, sample).prev_sample
        result[Scheduler.__name__] = numbers(sample)
    conditioned = fill(UNet2DConditionModel(sample_size=8, in_channels=2, out_channels=2, block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4,
                                            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
                                            cross_attention_dim=12, attention_head_dim=4))
    coder = fill(AutoencoderKL(in_channels=1, out_channels=1, block_out_channels=(8,), latent_channels=2, norm_num_groups=4))
    result["others"] = numbers(conditioned(data(1, 2, 8, 8), 7, data(1, 5, 12)).sample.detach(), coder(data(1, 1, 8, 8)).sample.detach())
    return result
