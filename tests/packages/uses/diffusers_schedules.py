"""Eight schedules of diffusion take five steps; an autoencoder and a UNet that looks at words train."""

import diffusers
from diffusers import AutoencoderKL, UNet2DConditionModel

from ..helpers import data, drawn_by_numpy, fill, numbers, train

SCHEDULES = ["DDPM", "DDIM", "EulerDiscrete", "DPMSolverMultistep", "PNDM", "UniPCMultistep", "HeunDiscrete", "LMSDiscrete"]


def run():
    x, result = data(1, 3, 8, 8), {}
    for name in SCHEDULES:
        schedule = getattr(diffusers, name + "Scheduler")()
        schedule.set_timesteps(5)
        z = x.clone()
        with drawn_by_numpy():
            for t in schedule.timesteps:
                z = schedule.step(schedule.scale_model_input(z, t) * 0.1, t, z).prev_sample
        result[name] = numbers(z)
    coder = fill(AutoencoderKL(block_out_channels=(8, 16), down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
                               norm_num_groups=4, latent_channels=2, sample_size=16))
    picture = data(1, 3, 16, 16)

    def coded():
        found = coder.encode(picture).latent_dist
        return found.kl().mean() * 0.01 + (coder.decode(found.mode()).sample - picture).pow(2).mean()

    result["autoencoder"] = train(coder, coded, 2, 0.01)
    unet = fill(UNet2DConditionModel(sample_size=8, block_out_channels=(8, 16), down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
                                     up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), cross_attention_dim=12, attention_head_dim=4, norm_num_groups=4,
                                     layers_per_block=1, in_channels=3, out_channels=3))
    words = data(1, 5, 12)
    result["unet"] = train(unet, lambda: unet(x, 3, words).sample.pow(2).mean(), 2, 0.01)
    return result
