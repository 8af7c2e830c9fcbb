"""Tables: survival of patients (pycox over torchtuples) by Cox's and discrete hazards, and predicted clicks (deepctr-torch)."""

import numpy as np
import torch
import torchtuples
from deepctr_torch.inputs import DenseFeat, SparseFeat, get_feature_names
from deepctr_torch.models import DCN, DeepFM
from pycox.models import CoxPH, LogisticHazard
from pycox.models.loss import cox_ph_loss, nll_logistic_hazard, nll_mtlr, nll_pmf

from ..helpers import data, fill, integers, numbers


def run():
    x, times, events = data(12, 4), integers(5, 12, seed=1), integers(2, 12, seed=2)
    losses = []
    for loss, width in ((nll_logistic_hazard, 6), (nll_pmf, 6), (nll_mtlr, 6)):
        phi = data(12, width, seed=3).requires_grad_()
        value = loss(phi, times, events.float())
        value.backward()
        losses += [value.item(), *numbers(phi.grad)]
    risk = data(12, seed=4).requires_grad_()
    cox_ph_loss(risk, times.float(), events.float()).backward()
    cox = CoxPH(fill(torchtuples.practical.MLPVanilla(4, [8], 1, batch_norm=True, output_bias=False)), torchtuples.optim.Adam(0.01))
    table = x.numpy(), (times.numpy().astype("float32"), events.numpy().astype("float32"))
    cox.fit(*table, batch_size=12, epochs=3, verbose=False, shuffle=False)
    cox.compute_baseline_hazards(*table)
    hazards = LogisticHazard(fill(torchtuples.practical.MLPVanilla(4, [8], 5)), torchtuples.optim.SGD(0.1), duration_index=np.arange(5.0))
    hazards.fit(x.numpy(), (times.numpy(), events.numpy().astype("float32")), batch_size=12, epochs=2, verbose=False, shuffle=False)

    columns = [SparseFeat("user", 6, embedding_dim=4), SparseFeat("item", 5, embedding_dim=4), DenseFeat("price", 1)]
    given = {"user": integers(6, 16).numpy(), "item": integers(5, 16, seed=1).numpy(), "price": data(16).numpy()}
    clicks = []
    for kind in (DeepFM, DCN):
        model = fill(kind(columns, columns, dnn_hidden_units=(8, 4), task="binary", device="cpu"))
        model.compile("adagrad", "binary_crossentropy", metrics=["binary_crossentropy"])
        named = {n: given[n] for n in get_feature_names(columns)}
        history = model.fit(named, integers(2, 16, seed=2).numpy(), batch_size=16, epochs=2, verbose=0, shuffle=False)
        clicks += [*history.history["loss"], float(model.predict(given, 16).mean())]
    return {"losses": losses, "cox": numbers(risk.grad), "survived": cox.predict_surv_df(x.numpy()).to_numpy()[:, 0].tolist(),
            "hazards": numbers(torch.tensor(hazards.predict_surv(x.numpy()))), "clicks": clicks}
