"""`functional_call` with modules that change during the call, that hold themselves, and with names and values of every kind."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from .snippets import check

BEFORE = """
class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)
        self.layer.weight.data.fill_(0.5); self.layer.bias.data.fill_(0.25)
        self.register_buffer("count", t.zeros(1))
        self.word = 0.0
    def forward(self, x):
        self.count = self.count + 1
        return self.layer(x) + self.count, len(list(self.parameters())), sorted(n for n, _ in self.named_parameters())
m, x = Counts(), t.ones(1, 1)
w, c = t.full((1, 1), 3.), t.full((1,), 7.)
call = t.func.functional_call
"""

VALUES = {
    "buffers": '{"count": c}',
    "weights and buffers": '{"layer.weight": w, "count": c}',
    "a weight": '{"layer.weight": w}',
    "None": '{"layer.bias": None}',
    "what is no tensor": '{"layer.weight": "w"}',
    "a number": '{"layer.weight": 2.0}',
    "an attribute": '{"word": c}',
    "a new name": '{"layer.extra": c}',
    "a new parameter": '{"layer.extra": nn.Parameter(c)}',
    "a module that is not there": '{"other.weight": w}',
    "nothing": "{}",
    "several": '[{"layer.weight": w}, {"count": c}]',
    "several with one name": '[{"layer.weight": w}, {"layer.weight": w}]',
}
AFTER = (
    "\nm_after = m.count.item(), m.layer.weight.item(), m.word, sorted(m.layer.__dict__.keys() & {'extra', 'weight'}), "
    "sorted(n for n, _ in m.named_parameters())"
)


@pytest.mark.parity
@pytest.mark.parametrize("options", ("", "tie_weights=False", "strict=True"))
def test_values_of_every_kind(options):
    """And what the module and the dict hold afterwards."""
    check({
        name: f"d = {given}\nout = call(m, d, x, {options}){AFTER}\n"
        "r = out, m_after, [(k, v) for k, v in d.items()] if isinstance(d, dict) else None, c, w"
        for name, given in VALUES.items()
    } | {
        f"{name}, afterwards": f"d = {given}\ntry: call(m, d, x, {options})\nexcept Exception: pass{AFTER}\nr = m_after, d if type(d) is list else list(d)"
        for name, given in VALUES.items() if name not in ("several", "several with one name", "nothing")
    }, BEFORE)  # fmt: skip


@pytest.mark.parity
def test_a_module_that_holds_itself():
    own = "m.layer.above = m\n"
    check({
        "by a long way": f'{own}r = call(m, {{"layer.above.layer.weight": w, "layer.above.count": c}}, x, tie_weights=False)[0], m.layer.weight, m.count',
        "by a short way": f'{own}r = call(m, {{"layer.weight": w}}, x, tie_weights=False)[0], m.layer.weight, m.count',
    }, BEFORE)  # fmt: skip


@pytest.mark.parity
def test_counts_of_a_batch_come_back_in_the_dict():
    check({
        "gradient": 'd = {"count": c}\ng = t.func.grad(lambda v: call(m, {"layer.weight": v}, x)[0].sum())(w); r = g, m.count',
        "vmap": 'r = t.func.vmap(lambda v: call(m, {"count": v}, x)[0])(t.stack([c, c + 1])), m.count',
    }, BEFORE)  # fmt: skip
