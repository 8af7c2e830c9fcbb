"""Sound: losses of auraloss in time and frequency, julius's resampling and filters, and nnAudio's spectrograms, with gradients"""

import auraloss
import julius
from nnAudio import features

from ..helpers import data, numbers


def run():
    x, truth = (data(2, 1, 2048).tanh() * 0.5).requires_grad_(), data(2, 1, 2048, seed=1).tanh() * 0.5
    found = {}
    losses = {
        "stft": auraloss.freq.STFTLoss(fft_size=256, hop_size=64, win_length=256),
        "many": auraloss.freq.MultiResolutionSTFTLoss(fft_sizes=[128, 256], hop_sizes=[32, 64], win_lengths=[128, 256]),
        "esr": auraloss.time.ESRLoss(), "snr": auraloss.time.SISDRLoss(), "dc": auraloss.time.DCLoss(), "logcosh": auraloss.time.LogCoshLoss(),
        "noise": auraloss.time.SNRLoss(),
    }
    for name, loss in losses.items():
        x.grad = None
        value = loss(x, truth)
        value.backward()
        found[name] = numbers(value, x.grad)
    x.grad = None
    bands = julius.split_bands(x, sample_rate=8000, n_bands=4)
    resampled = julius.resample_frac(x, 4, 3)
    low, long = julius.lowpass_filter(x, 0.2), julius.fft_conv1d(x, data(2, 1, 33, seed=2))
    (bands.square().sum() + resampled.square().sum() + low.sum() + long.square().mean()).backward()
    spectrum = features.STFT(n_fft=128, hop_length=64, output_format="Magnitude", verbose=False)(x.detach())
    mel = features.MelSpectrogram(sr=8000, n_fft=128, hop_length=64, n_mels=16, verbose=False)(x.detach())
    return {**found, "filters": numbers(bands, resampled, low, long, x.grad), "spectra": numbers(spectrum, mel)}
