"""Codebooks: vectors are quantized, with straight-through gradients."""

from vector_quantize_pytorch import FSQ, LFQ, ResidualVQ, VectorQuantize

from ..helpers import data, numbers


def run():
    x, result = data(2, 10, 4).requires_grad_(), {}
    quantize = VectorQuantize(dim=4, codebook_size=8, decay=0.8, commitment_weight=1.0)
    quantize._codebook.embed.data.copy_(data(1, 8, 4, seed=1))
    quantize._codebook.embed_avg.data.copy_(data(1, 8, 4, seed=1))
    quantized, indices, loss = quantize(x)
    (quantized.square().sum() + loss.sum()).backward()
    result["vq"] = numbers(quantized, indices.float(), loss, x.grad, quantize._codebook.embed)
    result["fsq"] = numbers(*[part.float() for part in FSQ([8, 5, 5, 4])(data(2, 10, 4, seed=2))])
    residual = ResidualVQ(dim=4, num_quantizers=2, codebook_size=8).eval()
    for k, layer in enumerate(residual.layers):
        layer._codebook.embed.data.copy_(data(1, 8, 4, seed=k))
    result["residual"] = numbers(*[part.float() for part in residual(data(2, 10, 4, seed=3))[:2]])
    free = LFQ(codebook_size=16, dim=4, entropy_loss_weight=0.1).eval()
    result["lfq"] = numbers(*[part.float() for part in free(data(2, 10, 4, seed=4))[:2]])
    return result
