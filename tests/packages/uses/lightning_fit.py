"""Trainer.fit, validation and prediction of a LightningModule."""

import logging

import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset

from ..helpers import data, fill, integers, numbers


class Classifier(L.LightningModule):
    def __init__(self, width=16):
        super().__init__()
        self.save_hyperparameters()
        self.net = fill(torch.nn.Sequential(torch.nn.Linear(8, width), torch.nn.Tanh(), torch.nn.Linear(width, 3)), scale=0.3)
        self.losses = []

    def training_step(self, batch, _):
        loss = torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.log("train_loss", loss, prog_bar=True)
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch, _):
        self.log("val_loss", torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1]))

    def predict_step(self, batch, _):
        return self.net(batch[0]).argmax(1)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.02)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)}


def run():
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    loader = DataLoader(TensorDataset(data(48, 8), integers(3, 48)), batch_size=16)
    model = Classifier()
    trainer = L.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                        enable_model_summary=False, gradient_clip_val=1.0)
    trainer.fit(model, loader, loader)
    validation = trainer.callback_metrics["val_loss"]
    predicted = trainer.predict(model, loader)
    return {"losses": model.losses, "validation": numbers(validation), "predicted": torch.cat(predicted).tolist(),
            "steps": [trainer.global_step, trainer.current_epoch, model.hparams.width]}
