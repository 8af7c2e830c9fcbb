"""pytorch_lightning with checkpoints, early stopping, accumulated gradients and a data module."""

import logging
import tempfile

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint
from torch.utils.data import DataLoader, TensorDataset

from ..helpers import data, fill, numbers


class Points(pl.LightningDataModule):
    def setup(self, stage):
        x = data(40, 4)
        self.all = TensorDataset(x, x.sum(1, keepdim=True).sin())

    def train_dataloader(self):
        return DataLoader(self.all, batch_size=8)

    val_dataloader = train_dataloader


class Regression(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = fill(torch.nn.Sequential(torch.nn.Linear(4, 12), torch.nn.SiLU(), torch.nn.Linear(12, 1)), scale=0.4)

    def training_step(self, batch, _):
        return torch.nn.functional.mse_loss(self.net(batch[0]), batch[1])

    def validation_step(self, batch, _):
        self.log("val", torch.nn.functional.mse_loss(self.net(batch[0]), batch[1]))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


def run():
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        kept = ModelCheckpoint(folder, monitor="val", filename="best")
        trainer = pl.Trainer(max_epochs=4, accelerator="cpu", logger=False, callbacks=[kept, EarlyStopping("val", patience=2)], default_root_dir=folder,
                             enable_progress_bar=False, enable_model_summary=False, accumulate_grad_batches=2)
        model = Regression()
        trainer.fit(model, datamodule=Points())
        again = Regression.load_from_checkpoint(kept.best_model_path)
    return {"best": numbers(kept.best_model_score), "weights": numbers(*again.net.parameters()), "steps": [trainer.global_step]}
