"""transformers' Trainer: accumulation, clipping, a cosine schedule, evaluation, checkpoints, and going on from one."""

import os
import tempfile

import torch
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

from ..helpers import fill, integers, numbers


class Examples(torch.utils.data.Dataset):
    def __init__(self):
        self.x, self.y = integers(50, 16, 8), integers(3, 16, seed=1)

    def __len__(self):
        return 16

    def __getitem__(self, i):
        return {"input_ids": self.x[i], "labels": self.y[i], "attention_mask": torch.ones(8, dtype=torch.long)}


def run():
    config = DistilBertConfig(vocab_size=50, dim=16, hidden_dim=32, n_layers=2, n_heads=2, dropout=0.0, attention_dropout=0.0, seq_classif_dropout=0.0,
                              num_labels=3, max_position_embeddings=16)
    folder, examples = tempfile.mkdtemp(), Examples()
    options = TrainingArguments(
        folder, num_train_epochs=2, per_device_train_batch_size=4, gradient_accumulation_steps=2, learning_rate=1e-2, lr_scheduler_type="cosine",
        warmup_steps=1, weight_decay=0.01, logging_steps=1, save_strategy="epoch", eval_strategy="epoch", report_to=[], use_cpu=True, max_grad_norm=0.5,
        train_sampling_strategy="sequential", disable_tqdm=True)  # fmt: skip
    trainer = Trainer(fill(DistilBertForSequenceClassification(config)), options, train_dataset=examples, eval_dataset=examples,
                      compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())})
    trainer.train()
    scores, history = trainer.evaluate(), trainer.state.log_history
    trainer.save_model(folder + "/final")
    loaded = DistilBertForSequenceClassification.from_pretrained(folder + "/final").eval()
    again = Trainer(fill(DistilBertForSequenceClassification(config)), options, train_dataset=examples, eval_dataset=examples)
    again.train(resume_from_checkpoint=os.path.join(folder, sorted(name for name in os.listdir(folder) if name.startswith("checkpoint"))[0]))
    return {
        "losses": [h["loss"] for h in history if "loss" in h], "norms": [float(h["grad_norm"]) for h in history if "grad_norm" in h],
        "scores": [scores["eval_loss"], scores["eval_accuracy"]], "predictions": trainer.predict(examples).predictions.ravel().tolist(),
        "loaded": numbers(loaded(examples.x).logits), "resumed": [h["loss"] for h in again.state.log_history if "loss" in h],
    }  # fmt: skip
