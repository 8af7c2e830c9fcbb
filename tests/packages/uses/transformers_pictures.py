"""A vision transformer, a CLIP of pictures and words, and a Whisper that listens train for two steps."""

import torch
import transformers as t

from ..helpers import data, fill, integers, train

SMALL = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}


def run():
    vit = fill(t.ViTForImageClassification(t.ViTConfig(**SMALL, image_size=16, patch_size=4, num_labels=3, hidden_dropout_prob=0.0,
                                                   attention_probs_dropout_prob=0.0)))
    x, classes = data(2, 3, 16, 16), torch.tensor([0, 2])
    whisper = fill(t.WhisperForConditionalGeneration(t.WhisperConfig(
        vocab_size=60, num_mel_bins=8, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, d_model=16,
        encoder_ffn_dim=32, decoder_ffn_dim=32, max_source_positions=20, max_target_positions=20, dropout=0.0, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, decoder_start_token_id=1, suppress_tokens=None, begin_suppress_tokens=None)))  # fmt: skip
    sound, words = data(2, 8, 40), integers(50, 2, 6) + 3
    clip = fill(t.CLIPModel(t.CLIPConfig(
        text_config={**SMALL, "vocab_size": 50, "max_position_embeddings": 10, "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1},
        vision_config={**SMALL, "image_size": 8, "patch_size": 4}, projection_dim=8)))  # fmt: skip
    tokens, pictures = integers(50, 2, 5), data(2, 3, 8, 8)
    tokens[:, -1] = 2
    return {
        "vit": train(vit, lambda: vit(pixel_values=x, labels=classes).loss, 2),
        "whisper": train(whisper, lambda: whisper(input_features=sound, labels=words).loss, 2),
        "clip": train(clip, lambda: clip(input_ids=tokens, pixel_values=pictures, return_loss=True).loss, 2),
    }
