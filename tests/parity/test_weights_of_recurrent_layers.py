"""Which weights recurrent layers compute with, and keep alive, where programs replace, delete or exchange them: PyTorch's list of its own."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from .snippets import check

BEFORE = """
import copy, gc, importlib, pickle, weakref
nn = t.nn
m = nn.LSTM(2, 3); x = t.ones(4, 1, 2)
for k, p in enumerate(m.parameters()): p.data.fill_(0.1 * (k + 1))
f = lambda: round(float(m(x)[0].sum()), 4)
"""
CASES = {
    "names": "r=m._flat_weights_names, len(m._flat_weights), all(a is b for a,b in zip(m._flat_weights,m.parameters()))",
    "delete": "del m.weight_hh_l0; r=f(), len(m._flat_weights), m._flat_weights[1].shape",
    "delete 0": "del m.weight_ih_l0; r=f()",
    "delete cpu": "del m.weight_hh_l0; m.float(); r=m._flat_weights[1] is None, f()",
    "drop": "w=m.weight_hh_l0; del m.weight_hh_l0; m.register_parameter('raw',w); m.weight_hh_l0=w*2; r=f(), m._flat_weights[1] is m.weight_hh_l0",
    "drop2": "w=m._parameters.pop('weight_hh_l0'); m.weight_hh_l0=nn.Parameter(w.data*2); r=f()",
    "drop dict": "m._parameters['weight_hh_l0']=nn.Parameter(t.zeros(12,3)); r=f(), m._flat_weights[1] is m.weight_hh_l0",
    "None": "m.bias_hh_l0=None; r=m._flat_weights[3] is None, f()",
    "assign list": "m._flat_weights=[t.zeros_like(w) for w in m._flat_weights]; r=f()",
    "assign elt": "m._flat_weights[1]=t.zeros(12,3); r=f()",
    "assign other": "m.weight_hh_l0=nn.Parameter(t.zeros(12,3)); r=f()",
    "assign str": "m.weight_hh_l0=3",
    "dropped memory": "w=weakref.ref(m.weight_hh_l0); m.weight_hh_l0=nn.Parameter(t.zeros(12,3)); gc.collect(); r=w() is None",
    "dropped memory dict": "w=weakref.ref(m.weight_hh_l0); m._parameters['weight_hh_l0']=nn.Parameter(t.zeros(12,3)); gc.collect(); "
        "a=w() is None; f(); gc.collect(); r=a, w() is None",
    "deleted memory": "w=weakref.ref(m.weight_hh_l0); del m.weight_hh_l0; gc.collect(); a=w() is None; r=a",
    "functional_call": "o={k:v.detach()*0 for k,v in m.named_parameters()}; "
        "y=t.func.functional_call(m,o,(x,))[0].sum(); r=float(y), f(), [a is b for a,b in zip(m._flat_weights,m.parameters())]",
    "functional_call memory": "o={k:v.detach()*0 for k,v in m.named_parameters()}; w=weakref.ref(o['weight_hh_l0']); "
        "y=float(t.func.functional_call(m,o,(x,))[0].sum()); del o; "
        "gc.collect(); a=w() is None; f(); gc.collect(); r=a, w() is None",
    "deepcopy": "n=copy.deepcopy(m); "
        "n.weight_hh_l0.data.zero_(); r=f(), round(float(n(x)[0].sum()),4), n._flat_weights[1] is n.weight_hh_l0, hasattr(n,'_flat_weight_refs')",
    "pickle": "n=pickle.loads(pickle.dumps(m)); n.weight_hh_l0.data.zero_(); r=f(), round(float(n(x)[0].sum()),4), n._flat_weights[1] is n.weight_hh_l0",
    "deepcopy deleted": "del m.weight_hh_l0; n=copy.deepcopy(m); r=round(float(n(x)[0].sum()),4)",
    "load": "n=nn.LSTM(2,3); n.load_state_dict(m.state_dict()); m=n; r=f()",
    "load assign": "n=nn.LSTM(2,3); n.load_state_dict(m.state_dict(),assign=True); m=n; r=f(), m._flat_weights[1] is m.weight_hh_l0",
    "double": "m.double(); x=x.double(); r=f(), m._flat_weights[0].dtype==t.float64",
    "all_weights": "r=len(m.all_weights[0]); del m.weight_hh_l0; m.all_weights",
    "state keys": "r=sorted(k for k in m.__dict__ if 'weight' in k)",
    "getstate": "r=sorted(k for k in m.__getstate__() if 'weight' in k)",
    "weight_norm": "nn.utils.weight_norm(m,'weight_hh_l0'); a=f(); m.weight_hh_l0_g.data.mul_(2); r=a,f()",
    "parametrize": "nn.utils.parametrizations.weight_norm(m,'weight_hh_l0'); a=f(); m.parametrizations.weight_hh_l0.original0.data.mul_(2); r=a,f()",
    "prune": "p=importlib.import_module(t.__name__+'.nn.utils.prune'); p.l1_unstructured(m,'weight_hh_l0',0.5); a=f(); p.remove(m,'weight_hh_l0'); r=a,f()",
    "grads": "m(x)[0].sum().backward(); r=[round(float(p.grad.sum()),4) for p in m.parameters()]",
    "zero_grad deleted": "w=m.weight_hh_l0; del m.weight_hh_l0; m(x)[0].sum().backward(); r=w.grad is not None, len(list(m.parameters()))",
    "meta": "m=nn.LSTM(2,3,device='meta'); m=m.to_empty(device='cpu'); r=m._flat_weights[0].device.type, m._flat_weights[0] is m.weight_ih_l0",
    "share": "n=nn.LSTM(2,3); n.weight_hh_l0=m.weight_hh_l0; r=n._flat_weights[1] is m.weight_hh_l0",
}  # fmt: skip


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
def test_weights_of_recurrent_layers():
    check(CASES, BEFORE)


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
def test_layers_of_all_kinds_take_what_their_weights_are_replaced_by():
    calls = {
        f"{kind}, {options}": f"m = nn.{kind}(2, 3, {options}); [w.data.fill_(0.1) for w in m.parameters()]; n = m._flat_weights_names\n"
        "m._flat_weights = [w.detach() * 2 for w in m._flat_weights]; r = n, m(x)[0], [getattr(m, k) for k in n], len(m.all_weights)"
        for kind in ("LSTM", "GRU", "RNN") for options in ("", "bias=False", "num_layers=2, bidirectional=True")
    }  # fmt: skip
    check({**calls, "LSTM, proj_size=1": calls["LSTM, "].replace("(2, 3, ", "(2, 3, proj_size=1")}, BEFORE)


@pytest.mark.parity
@pytest.mark.parametrize("layer", ("RNN", "GRU", "LSTM"))
def test_outputs_are_views_where_pytorchs_are(layer):
    """Of what nobody else has: that of an LSTM that has the batch first, and of one sample."""
    ends = ("r = y._is_view()", "r = [s._is_view() for s in states]", "y.detach_(); r = y", "y[0].mul_(2); y.sum().backward(); r = x.grad",
            "with t.no_grad(): y.mul_(2)\n(y * y).sum().backward(); r = x.grad",
            "y.register_hook(lambda g: g * 2); y.add_(1); (y * y).sum().backward(); r = x.grad",
            "v = y[0]; y.zero_(); r = v")  # fmt: skip
    check({
        f"{options}, {shape}, {end}": f"t.manual_seed(0); m = t.nn.{layer}(4, 3, {options}).double()\nfor p in m.parameters(): p.data.fill_(0.1)\n"
        f"x = t.ones({shape}, dtype=t.float64).requires_grad_(); y, h = m(x); states = h if isinstance(h, tuple) else (h,)\n{end}"
        for options in ("1", "2", "1, batch_first=True", "1, bidirectional=True", "2, batch_first=True, bidirectional=True")
        for shape in ("2, 5, 4", "5, 4") for end in ends
    })  # fmt: skip
