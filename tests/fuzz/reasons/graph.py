"""Differences in gradients, in what nodes keep, and in views, hooks and modes (see `case`)."""

from __future__ import annotations

import functools
import re
from typing import Any

from .case import Case, Explained

_VIEWS_INSIDE = re.compile(r"repeat_interleave|einsum|(?i:pool1d|instance_?norm)")
#: a part of a tensor, a change of that and one of the part
_VIEW_OF_CHANGED = r"(v\d+) = (\w+)(\[|\.\w+\()(?s:.*)\n\s*\2(\.\w+_\(|\[.*\] [-+*/]?= )(?s:.*)\n\s*\1(\.\w+_\(|\[.*\] [-+*/]?= )"


@functools.cache
def _computed_anew() -> re.Pattern[str]:
    """An op that keeps other tensors than PyTorch's (tests/parity/exchanged.py names them), and a write to somebody's data after it."""
    from ...parity.exchanged import KNOWN

    names = {name.split(" ")[0].rsplit(".")[-1].replace("_", "") for name in KNOWN}
    return re.compile(rf"(?<![a-z])({'|'.join(sorted(names))})(\dd)?\(.*\.data[.\[]", re.DOTALL)


def made_by(call: re.Pattern[str], before: str) -> set[str]:
    """The names that lines with a call give their results, those of parts of these, and what modules that are made so return."""
    made: set[str] = set()
    for line in before.splitlines():
        part = re.match(r"\s*(v\d+) = (v\d+)(?:\[|\(|\.conj\(\))", line)
        if call.search(line):
            made |= set(re.findall(r"\b(v\d+)\b(?=[^=;(]* = )", line))
        elif part and part[2] in made:
            made.add(part[1])
    return made


def descended(names: list[str], text: str) -> set[str]:
    """The names of what was made of some, by lines of a program, and of what was made of that."""
    made: set[str] = set()
    for part in re.split(r"\n|; ", text):
        target, equals, given = part.partition(" = ")
        if equals and not {*names, *made}.isdisjoint(re.findall(r"\bv\d+\b", given)):
            made |= set(re.findall(r"\bv\d+\b", target))
    return made


def _behind_the_graph(case: Case) -> Any:
    """Whether a gradient comes after values were changed which a node keeps here or there."""
    if "value" not in case.kind or not re.search(r"grad|backward", case.statement + case.kind):
        return False
    if re.search(r"kron\((?s:.)*(\w_\(|\.step\(|\] [-+*/]?= |\.data)", case.before):
        return True
    text = case.text
    if ".data" in text and "create_graph=True" in text:  # what a recorded gradient's nodes keep is the rule's own affair: quotients, powers
        return True
    if re.search(r"func\.vjp\(torch\.func\.grad\((?s:.*)\.data[.\[]", text):  # (which is recorded too)
        return True
    if re.search(r"distributions\.(?s:.*)\.data[.\[]", case.before):  # (of many ops)
        return True
    return re.search(r"\.data[.\[]", case.before) and _computed_anew().search(case.before.lower().replace("_", ""))


def detached(statement: str) -> list[str]:
    """The names that are detached in place, and those of a function's results where one of these is."""
    found = re.findall(r"(v\d+)\.detach_\(", statement)
    return found + (re.findall(r"v\d+", statement.rpartition("return ")[2].partition("\n")[0]) if "parts(found)[-1].detach_()" in statement else [])


GRAPH = (
    Explained(
        "derivatives that PyTorch lacks",
        "Bessel functions of integer order and some in-place forms have derivatives here; where PyTorch has none it may only fail in backward.",
        lambda c: (c.kind in ("requires_grad", "grad none") and re.search(r"special\.\w*bessel", c.statement))
        or (c.kind == "not refused" and re.search(r"derivative for .* is not implemented", c.theirs))
        # (an error of the next line)
        or (c.kind == "error type" and re.match("NameError|TypeError", c.mine) and re.search(r"derivative for .* is not implemented", c.theirs))
        or (c.kind == "not refused" and "backward calculation is triggered with a negative slope" in c.theirs)
        or (c.kind == "not refused" and "scatter_reduce does not support automatic differentiation for outputs with complex" in c.theirs
        and "create_graph" in c.statement),
    ),
    Explained(
        "products added under autocast",
        "A product that is added in place under autocast is recorded as a product and a sum, of which a pass by one operand may leave the other.",
        lambda c: c.kind == "not refused" and "through the graph a second time" in c.theirs
        and re.search(r"autocast\((?s:.*)\.(addmm|addmv|addbmm|baddbmm|addr)_\(", c.text),
    ),
    Explained(
        "outputs of cells",
        "The steps of recurrent cells are outputs of one node here, which numbers them.",
        lambda c: c.kind == "value" and (of := re.search(r"(v\d+)\.output_nr", c.statement)) is not None
        and made_by(re.compile("(RNN|GRU|LSTM)Cell\\("), c.before).issuperset([of[1]]),
    ),
    Explained(
        "inference tensors that are converted",
        "A loss of operands of two dtypes keeps what one of them was converted to, which is no inference tensor any more; PyTorch keeps what it was given.",
        lambda c: c.kind == "not refused" and "Inference tensors cannot be saved" in c.theirs and "_loss(" in c.statement
        and len({getattr(c.known.get(n), "dtype", "") for n in re.findall(r"v\d+", c.statement.partition(" = ")[2])}) > 1,
    ),
    Explained(
        "how far a refused pass has come",
        "The derivative by the first operand is refused by a node of its own, so that one by the second can be asked for; that has been added by then.",
        lambda c: (c.kind == "grad none" and c.their_values == "None"
                   and re.search(r"derivative for '(igammac?: input|zeta|heaviside)' is not implemented", c.error))
        # (a fault of its own, before the leaf whose hook raises in both)
        or (c.kind == "grad none" and c.their_values == "None" and "input_is_complex == grad_is_complex" in c.error)
        or (c.kind.startswith("grad ") and "through the graph a second time" in c.error and re.search(r"backward\(|grad\(", c.failed))
        # a pass that PyTorch has refused may have freed what came before the refusal; here such a pass frees nothing (`check.freed` looks)
        or (c.kind == "not refused" and "through the graph a second time" in c.theirs and re.search(r"backward\(|grad\(", c.failed)),
    ),
    Explained(
        "checkpoints by a pass of their own",
        "What PyTorch's checkpoint with use_reentrant=True passes on has no history; here both ways can be differentiated again.",
        lambda c: (re.search(r"(requires_grad|history|leaf)$", c.kind) and "use_reentrant=True" in c.before
        and ("create_graph=True" in c.statement or (".grad" in c.statement and "create_graph=True" in c.before)))
        or (c.kind == "grad none" and c.their_values == "None" and re.search(r"use_reentrant=True(?s:.*)create_graph=True", c.statement))
        or (c.kind == "not refused" and "does not require grad and does not have a grad_fn" in c.theirs
        and re.search(r"use_reentrant=True(?s:.*)create_graph=True", c.text)),
    ),
    Explained(
        "nothing through a checkpoint",
        "Where no gradient comes to a checkpoint with use_reentrant=True, PyTorch's goes back through it with zeros, which become the gradients "
        "of leaves that have none here.",
        lambda c: c.kind == "grad none" and "use_reentrant=True" in c.before and re.fullmatch(r"[-\[\], .0j]*", c.their_values),
    ),
    Explained(
        "passes to what is no leaf",
        "backward(inputs=[…]) of a tensor that is no leaf runs its node in PyTorch, though no gradient goes on, and looks at what that has saved.",
        lambda c: c.kind == "not refused" and "has been modified by an inplace operation" in c.theirs
        and (asked := re.search(r"inputs=\[(v\d+)(?:, (v\d+))?\]", c.statement))
        and any(n and getattr(c.known.get(n), "history", False) for n in asked.groups()),
    ),
    Explained(
        "saved on the CPU",
        "save_on_cpu and allow_mutation_on_saved_tensors keep copies here; PyTorch's keep the tensors of the CPU themselves, or do not see a "
        "write by way of .data, and read what was written since.",
        lambda c: "value" in c.kind
        and re.search(r"save_on_cpu|\.data(?s:.)*allow_mutation_on_saved_tensors|allow_mutation_on_saved_tensors(?s:.)*\.detach\(\)\.\w+_\(",
                      c.text)
        and re.search(r"grad|backward", c.statement + c.kind),
    ),
    Explained(
        "sources that are not read to their end",
        "PyTorch's gradient of scatter_reduce's largest and smallest wants a source that is no larger than the index.",
        lambda c: c.kind == "not refused" and re.search(r"scatter_reduce_?\(.*am(ax|in)", c.text) and "The size of tensor a" in c.theirs,
    ),
    Explained(
        "what takes no part",
        "PyTorch's gradient of the largest and smallest counts the input among the ties also where include_self=False leaves it out "
        "(docs/design.md).",
        lambda c: "value" in c.kind and re.search(r"_reduce_?\(.*am(ax|in).*(include_self=)?False", c.text)
        and re.search(r"grad|backward", c.statement),
    ),
    Explained(
        "as_strided_scatter's gradient",
        "PyTorch's is known to be wrong: it lets through what is overwritten (tests/parity/opdb.py, WRONG_THERE).",
        lambda c: "as_strided_scatter" in c.text
        and (c.kind == "grad value" or (c.kind == "value" and re.search(r"autograd\.grad|backward\(", c.statement)) or "INTERNAL ASSERT" in c.theirs),
    ),
    Explained(
        "what second derivatives keep",
        "A derivative that is recorded as one op keeps the gradient that it is given, where PyTorch keeps a product with that: changing what was "
        "given before the next pass is refused, and so is what was made in inference mode.",
        lambda c: (c.kind == "raised" and "saved by DivBackward0" in c.mine and re.search(r"jacfwd\(.*\.prod\(\)", c.before))  # (products there)
        or (c.kind == "raised" and "Inference tensors cannot be saved for backward" in c.mine and "inference_mode" in c.before
                   and re.search(r"autograd\.grad\([^()]*, v\d+, .*create_graph=True", c.statement))
        or (c.kind == "raised" and "modified by an inplace" in c.mine
        and (given := re.search(r"autograd\.grad\([^()]*, (v\d+), .*create_graph=True", c.before))
        and (
            re.search(rf"^{given[1]}\b[^=\n]*(\w_\(|\] [-+*/]?= )", c.before, re.M)
            or re.search(rf"^{given[1]} = v\d+\.grad$(?s:.*)\.backward\(", c.before, re.M)  # a pass accumulated into it
            or any(re.search(rf"^{v}(\.\w+_\(|\[.*\] [-+*/]?= | [-+*/]= )", c.before[given.end() :], re.M)  # by way of a view
                   for v in re.findall(rf"\b(v\d+) = {given[1]}[\[.]", c.before))
        )),
    ),
    Explained(
        "views that are made inside",
        "Results of repeat_interleave, einsum, pools along one dim and instance_norm may be views in PyTorch of what nobody else has: they say "
        "so, may not be detached in place, a hook of such a result or its node is lost when the result is changed in place, and the node has saved "
        "nothing that a pass into the result would consume.",
        lambda c: (made := made_by(_VIEWS_INSIDE, c.before))
        and (
            ("Can't detach views in-place" in c.theirs and made_by(_VIEWS_INSIDE, c.text).intersection(detached(c.statement)))
            or (c.kind == "value" and made.intersection(re.findall(r"(v\d+)(?:\.conj\(\))?\._(?:is_view\(\)|base\b)", c.statement)))
            or ("value" in c.kind and made.intersection(re.findall(r"(v\d+)(?:\.grad_fn\.register_(?:pre)?hook|\.register_hook)", c.before)))
            or (c.kind == "value" and (hooked := re.search(r"(parts\(found\)\[0\])\.register_hook\((?s:.*)\1\.detach\(\)\.\w+_\(", c.before))
                and c.name.startswith("gs[") and any(re.search(rf"\breturn .*\b{v}\b", c.before[: hooked.start()]) for v in made))
            or (c.kind == "raised" and "second time" in c.mine and made.intersection(re.findall(r"inputs=\[(v\d+)\]", c.before)))
            # (views of one that is asked to require grad)
            or (c.kind in ("requires_grad", "leaf", "history") and c.name not in made
                and (asked := made.intersection(re.findall(r"(v\d+)\.requires_grad(?:_\(| = )", c.statement))) and c.name in descended([*asked], c.before))
        ),
    ),
    Explained(
        "what a loss keeps",
        "The fused cross_entropy keeps the logits themselves where PyTorch keeps a copy, their log_softmax (tests/parity/saved.py).",
        lambda c: c.kind == "raised" and "modified by an inplace" in c.mine and "saved by CrossEntropyLossBackward" in c.mine,
    ),
    Explained(
        "what a recurrent layer keeps",
        "A layer is one node here, which keeps its weights; in PyTorch those that something is multiplied with through which nothing is asked for are "
        "not kept.",
        lambda c: c.kind == "raised" and "modified by an inplace" in c.mine and "saved by RecurrentBackward" in c.mine
        and re.search(r"(RNN|GRU|LSTM)(Cell)?\(", c.before),
    ),
    Explained(
        "hooks on views in second derivatives",
        "What is changed in place by way of a part of a view that has a hook goes past the hook to the base, in PyTorch but for a second derivative by "
        "what the change has read.",
        lambda c: "value" in c.kind and "create_graph=True" in c.text
        and any(re.search(rf"\b{v}(?:\.\w+(?:\(\))?|\[[^\]\n]*\])+\.\w+_\(", c.before[at:])
                for at, v in ((m.end(), m[1]) for m in re.finditer(r"\b(v\d+)\.register_hook\(", c.before))),
    ),
    Explained(
        "views that nobody has looked at",
        "PyTorch refuses to change a view whose base has got a history since it was made, until somebody asks for the view's grad_fn.",
        lambda c: c.kind == "not refused" and "a leaf Variable that requires grad is being used in an in-place" in c.theirs
        and (re.search(rf"tied\.\w+_\(|{_VIEW_OF_CHANGED}", c.text) or re.match(r"v\d+\[.*\] [-+*/%]+= ", c.statement)
             # a part of a view, and then the view
             or re.search(r"\b(\w+)\[[^\]\n]*\] [-+*/]?= (?s:.*)\n\s*\1(\.\w+_\(|\[[^\]\n]*\] [-+*/]?= )", c.text)),
    ),
    Explained(
        "hooks on views that may not be looked at",
        "PyTorch refuses the first hook on a view of which nobody can say what its history is, and takes the next ones, which it never calls.",
        lambda c: c.kind == "raised" and "its base or another view of its base has been modified" in c.mine
        and (on := re.search(r"(v\d+)\.register_hook\(", c.statement)) and re.search(rf"\b{on[1]}\.register_hook\(", c.before),
    ),
    Explained(
        "views that nothing is differentiated by",
        "PyTorch refuses a view of which nobody can say what its history is also where it is only counted or put in order, or compared by what is made of its "
        "difference; here where something could be recorded.",
        lambda c: c.kind == "not refused" and re.search("its base or another view of its base has been modified", c.theirs)
        and re.search(r"\b(isfinite|isclose|argsort|bincount|unique(_consecutive)?|histogram|matrix_rank)\(", c.statement),
    ),
    Explained(
        "gradients that are views",
        "What autograd.grad and its like return has memory of its own here; in PyTorch it may be a view that was made where nothing is recorded, "
        "which says so, which what is recorded may not change, and whose views require no grad when it is asked to.",
        lambda c: (
            (made := re.match(r"(v\d+)(?:(?:\.\w+(?:\(\))?)*\.\w+_\(| [-+*/]= |\[.*\] [-+*/]?= )", c.statement)
             or re.search(r"(v\d+)\._is_view\(\)", c.statement))
            and re.search(rf"\b{made[1]},?[^=]* = torch\.(?:autograd\.grad|func\.(?:vjp|grad))\(", c.before)
            and (
                (c.kind == "not refused" and "A view was created in no_grad mode and is being modified inplace" in c.theirs)
                or (c.kind == "value" and "_is_view()" in c.statement)
                or (c.kind in ("requires_grad", "leaf", "history") and ".requires_grad_(" in c.statement and c.name in descended([made[1]], c.before))
            )
        )
        # what a hook has kept of it, which is the same tensor there
        or (c.kind in ("requires_grad", "leaf", "history", "value") and (held := re.match(r"(v\d+)\[\d+\]", c.name))
            and re.search(rf"register_hook\(.*\b{held[1]}\.append\b", c.before)
            and (made := re.match(r"(v\d+)(?:\.\w+_\(| [-+*/]= |\[.*\] [-+*/]?= )", c.statement))
            and re.search(rf"\b{made[1]},?[^=]* = torch\.autograd\.grad\(", c.before))
        or (c.kind in ("requires_grad", "leaf", "history", "value") and (held := re.match(r"(\w+)\[\d+\]", c.name)) and "autograd.grad(" in c.before
            and re.search(rf"register_hook\({held[1]}\.append\)", c.before)
            and any({c.name, "found"} <= set(re.findall(r"found|\w+\[\d+\]", pair)) for pair in c.shared))
        # a view of the gradient that it was given, which has been changed since
        or (c.kind == "value" and c.name.startswith("gs[")
            and any(pair.startswith("gs[") != (" and gs[" in pair) for pair in c.shared)),
    ),
    Explained(
        "gradients that are detached in place",
        "Which such a view may not be.",
        lambda c: c.kind == "not refused" and "Can't detach views in-place" in c.theirs
        and made_by(re.compile(r"autograd\.grad\(|func\.(?:vjp|grad)\("), c.text).intersection(detached(c.statement)),
    ),
    Explained(
        "order of gradients on their way",
        "PyTorch's gradients of what is no leaf may be expanded or lie as their operands did; those of leaves agree.",
        lambda c: (c.kind == "strides" and re.search(r"(autograd\.grad|vjp|func\.(?:grad|jac\w+|linearize)|hessian|register_)", c.statement))
        or (c.kind == "grad strides" and "retain_grad" in c.statement)
        or (c.kind == "strides" and "[" in c.name and "backward" in c.statement)
        or (c.kind == "strides" and (of := re.match(r"v\d+ = (v\d+)[\[.]", c.statement))  # a view of one
            and re.search(rf"^{of[1]}, = torch\.autograd\.grad\(", c.before, re.M))
        or (c.kind == "strides" and "autograd.grad(" in c.before  # what is computed of one that is expanded there, as nothing else is
            and not re.search(r"expand|broadcast|meshgrid|as_strided", c.text)
            and any(0 in getattr(c.known.get(n), "strides", ()) for n in re.findall(r"v\d+", c.statement)))
        or (c.kind == "value" and ".stride()" in c.statement and "autograd.grad(" in c.before
            and any(0 in getattr(c.known.get(n), "strides", ()) for n in re.findall(r"v\d+", c.statement)))
        or (c.kind == "raised" and "view size is not compatible" in c.mine  # of a part of one, which is expanded there
            and (of := re.search(r"(v\d+)\.view\(", c.statement)) and 0 in getattr(c.known.get(of[1]), "strides", ())
            and "autograd.grad(" in c.before),
    ),
    Explained(
        "exchanged data",
        "Where x.data = … (or a write to memory that x.set_(…) has taken) comes between the forward and the backward pass, gradients are here "
        "those of the values that the forward pass read; PyTorch reads the new ones, which is no derivative of anything, and "
        "forgets the leaf where its dtype was another.",
        lambda c: ("value" in c.kind or c.kind in ("raised", "not refused", "grad shape", "none", "grad none")) and "second time" not in c.mine
        and (re.search(r"\.data = |\.set_\(v|vector_to_parameters|^\s*(v\d+|mod)\.double\(\); v\d+ = \[z\.dtype", c.before, re.M)  # (of a module, too)
             or re.search(r"^def step(?s:.*)\n    \w+\.data = (?s:.*)\.backward\(", c.statement, re.M))  # within a function
        and re.search(r"grad|backward", c.statement + c.kind),
    ),
    Explained(
        "views of exchanged data",
        "A view stays in the memory that it was made of; where it is changed in place PyTorch looks for it in the new one, which may be too small.",
        lambda c: c.kind == "not refused" and "out of bounds for storage of size" in c.theirs and re.search(r"^v\d+\.data = ", c.before, re.M)
        and re.search(r"\.\w+_\(", c.statement),
    ),
    Explained(
        "zeros of exchanged data",
        "Such a forgotten leaf's gradient of zeros has the new dtype, and here what comes to it has the old one. No pass is made for it alone, "
        "and so none is refused as a second one.",
        lambda c: (asked := re.search(r"\[(v\d+)(?:, (v\d+))?\]", c.statement))
        and all(not n or re.search(rf"^{n}\.data = ", c.before, re.M) for n in asked.groups())
        and ((c.kind == "dtype" and "materialize_grads=True" in c.statement)
             or (c.kind == "raised" and "second time" in c.mine and "autograd.grad(" in c.statement
                 and re.search(rf'^{asked[1]} = make\(.*"float32"', c.before, re.M)
                 and any(c.known[of].dtype == "float64" for of in re.findall(rf"^{asked[1]}\.data = (v\d+)", c.before, re.M)))),
    ),
    Explained(
        "checkpoints that find another leaf",
        "PyTorch counts what a checkpoint saves when it runs anew, which is nothing where a leaf has been told since that it requires no grad.",
        lambda c: c.kind == "not refused" and "A different number of tensors was saved" in c.theirs
        and re.search(r"checkpoint\((?s:.*)(requires_grad = not|requires_grad_\(False\))", c.before),
    ),
    Explained(
        "what nodes keep",
        "Ops whose derivative reads other tensors than in PyTorch show it to programs that change values behind the graph's back "
        "(tests/parity/exchanged.py names them; kron keeps a view that has no version there).",
        _behind_the_graph,
    ),
    Explained(
        "hooks on where a pass begins",
        "A multi-grad hook counts the gradients that are to come, and in PyTorch forgets that of the one tensor that the pass begins with: "
        "the hook is called too early, or never.",
        lambda c: c.kind == "value"
        and (held := re.findall(r"register_multi_grad_hook\(\[(v\d+), (v\d+)\]", c.before))
        and any(c.same(n, m) for pair in held for m in pair
                for begun in re.findall(r"(v\d+)\.backward\(|autograd\.(?:grad|backward)\(\[?(v\d+),", c.statement) for n in begun if n),
    ),
    Explained(
        "inputs of nodes",
        "Which inputs a node has, and in what order, is the library's own business: PyTorch has none for numbers and masks. So are its results: "
        "a recurrent layer or cell, or an attention, is one node here, with others that nothing may come of.",
        lambda c: (c.kind == "raised" and "'NoneType'" in c.mine and "for g in go)" in c.before
         and re.search(r"(RNN|GRU|LSTM|Cell)\(|scaled_dot_product_attention\(|\bdet\(", c.before))
        or (c.kind == "not refused" and "'NoneType'" in c.theirs
            and any(re.search(rf"\b{v}\b[^=\n]* = .*\b(aminmax|(std|var)_mean)\(", c.before)
                    for v in re.findall(r"(v\d+)\.grad_fn\.register_prehook\(.*for g in go\)", c.before)))
        or (c.kind == "value" and (held := c.name.partition("[")[0]) and f"{held}.append((len(gi)," in c.before)
        or (c.kind == "raised" and "second time" in c.mine and "RecurrentBackward0" in c.mine  # (a pass into it runs it all)
            and made_by(re.compile(r"(RNN|GRU|LSTM)\("), c.before).intersection(re.findall(r"inputs=\[(v\d+)\]", c.before))),
    ),
    Explained(
        "integers that require grad",
        "Into which a tensor that requires grad was copied: in PyTorch they say that they require grad too, which nothing can come of.",
        lambda c: (c.kind in ("requires_grad", "history", "leaf") and re.match(r"u?int|bool", getattr(c.known.get(c.name), "dtype", "")))
        or (c.kind == "not refused" and "Autograd not support dtype" in c.theirs and re.search(r"'u?int\d+'", c.statement)),
    ),
    Explained(
        "versions of results",
        "PyTorch writes some results piece by piece, or computes within them, which counts as changes of what nobody has changed yet. A copy of a "
        "tensor over the same memory begins with one, as one of a file that shows conjugates.",
        lambda c: c.kind == "value"
        and (name := re.search(r" (v\d+)\._version", c.statement))
        and (re.search(rf"\b{name[1]} = .*(\.copy|'pickle'\)\.loads)\(", c.before)
             or not re.search(rf"\b{name[1]}(\.\w+_\(|\[.*\] [-+*/%]?= | [-+*/%]= |\.data\b)|out=.*\b{name[1]}\b", c.before)),
    ),
    Explained(
        "two faults of a change in inference mode",
        "PyTorch computes, writes and only then refuses to count a change of an inference tensor outside of the mode; here nothing is "
        "changed, so that what else is wrong with the call is not looked at.",
        lambda c: c.kind == "error type" and "Inplace update to inference tensor" in c.mine,
    ),
    Explained(
        "zeros that nothing is multiplied with",
        "Derivatives of what is constant are zeros without memory in PyTorch, whose products are 0 also with nan: of the variance of one number.",
        lambda c: c.kind == "value" and re.search(r"\b(var|std)(_mean)?\(", c.before) and c.statement.startswith("hs = "),
    ),
    Explained(
        "results of numbers that are kept",
        "The rule of a product by index_reduce of 0-d tensors reads the result that the op made; in PyTorch the one that it was written to.",
        lambda c: c.kind == "value" and re.search(r"index_reduce_\(.*'prod'", c.before) and c.statement.startswith("hs = ")
        and re.search(r"v1 = make\(1, \(\)", c.before),
    ),
    Explained(
        "tensors detached in place",
        "PyTorch reads what a node saved by way of the tensor's own place in the graph, so that it refuses a pass after detach_(); "
        "here the pass runs.",
        lambda c: c.kind in ("not refused", "error type") and "has been detached in-place" in c.theirs,
    ),
    Explained(
        "gradients can be written to",
        "What autograd.grad returns has memory of its own here; PyTorch may hand out an expanded view, which it refuses to change.",
        lambda c: (c.kind == "not refused" and "more than one element of the written-to tensor" in c.theirs
                   and ("grad" in c.statement
                        or (re.search(r"(expand|broadcast_to)\((?s:.*)\.zero_\(", c.before) and "backward(create_graph=True" in c.statement)
                        or made_by(re.compile(r"autograd\.grad\("), c.before) & set(re.findall(r"v\d+", c.statement))))
        or (
            c.kind == "value"
            and (made := re.match(r"(?:with torch\.\w+\(\):\n    )?(v\d+)(?:(\.(?:view|flatten)\(.*\))?\[.*\] [-+*/]?= "
                               r"|(?:\.\w+\([^()]*\)(?:\[\d\])?)*\.\w+_\()",
                               c.statement)
                 or re.search(r"(v\d+)\.is_contiguous\(\)", c.statement))
            and re.search(rf"\b{made[1]},?[^=]* = torch\.autograd\.grad\(", c.before)
            and 0 in getattr(c.known.get(made[1]), "strides", ())
        )
        or (c.kind == "value" and (of := re.search(r"(v\d+)\.untyped_storage\(\)", c.statement)) and 0 in getattr(c.known.get(of[1]), "strides", ())
            and re.search(rf"\b{of[1]},?[^=]* = torch\.autograd\.grad\(", c.before))
        or (  # by way of a view of it
            c.kind == "value" and 0 in getattr(c.known.get(c.name), "strides", ())
            and re.search(rf"\b{c.name},?[^=]* = torch\.autograd\.grad\(", c.before)
            and (part := re.search(r"\b(v\d+)(?:\.\w+_\(|\[.*\] [-+*/]?= | [-+*/]= )", c.statement))
            and re.search(rf"^{part[1]} = {c.name}[\[.]", c.before, re.M)
        ),
    ),
    Explained(
        "squares of what depends on nothing",
        "Gradients that are the same whatever a leaf is have a history here, through which zeros come; in PyTorch none of them has, and `squares` "
        "of them is the number 0.",
        lambda c: (c.kind == "not refused" and not c.gained and (
            ("'int' object has no attribute 'backward'" in c.theirs and re.search(r"squares\(gs\)\.backward", c.statement))
            or ("does not require grad and does not have a grad_fn" in c.theirs and "(_h * _h).sum().backward()" in c.statement)))
        # (hooks make something of nothing)
        or (c.kind == "not refused" and "does not require grad and does not have a grad_fn" in c.theirs
            and re.search(r"register_hook\(lambda g: g \+ 1\)(?s:.*)\(_h \* _h\)\.sum\(\)\.backward\(\)", c.statement)),
    ),
    Explained(
        "nodes of recorded gradients",
        "A pass into a result runs the node that made it: of a weight's recorded gradient that is the product here, and in PyTorch the "
        "transpose of that, which saved nothing.",
        lambda c: c.kind == "raised" and "second time" in c.mine and "MmBackward0" in c.mine
        and (asked := re.search(r"inputs=\[(v\d+)(?:, \1)*\]", c.statement))
        and re.search(rf"\b{asked[1]} = torch\.autograd\.grad\(.*\.weight, create_graph=True\)", c.before),
    ),
    Explained(
        "other memory for a leaf",
        "After x.set_(…) under no_grad PyTorch's autograd.grad does not find the leaf x in graphs that were recorded before, whose passes still "
        "accumulate into it; here it is found, and what was kept of it is refused.",
        lambda c: (c.kind in ("none", "raised", "error type", "value", "shape")
                   or (c.kind == "grad value" and "squares(gs).backward()" in c.statement))  # (of which it is one)
        and (given := re.findall(r"\b(v\d+|[wb])\.set_\(", c.before))
        and (asked := re.search(r"autograd\.grad\(.*?, \[?(v\d+|[wb])(?:, (v\d+|[wb]))?\]?", c.statement))
        and set(asked.groups()) & set(given),
    ),
    Explained(
        "strict single use",
        "A second backward pass through a graph is an error here also where its nodes saved nothing (docs/design.md).",
        lambda c: c.kind in ("raised", "error type") and "second time" in c.mine,
    ),
    Explained(
        "data of inference tensors",
        "PyTorch records nothing of what was given the data of an inference tensor, though it says that it requires grad; here its history goes on, "
        "and a leaf is not changed in place.",
        lambda c: (c.kind in ("requires_grad", "history", "leaf") or (c.kind == "raised" and "used in an in-place operation" in c.mine))
        and "inference_mode()" in c.before
        and (to := re.search(r"^(v\d+)\.data = v|vector_to_parameters\(v\d+, \[(v\d+)\]\)", c.before, re.M))
        and (to[1] or to[2]) in c.statement,
    ),
    Explained(
        "inference tensors with other data",
        "Which stay ones here. In PyTorch they say that they are none, but are refused as soon as anything is made of them, as they count no changes.",
        lambda c: c.kind == "not refused" and "Inference tensors do not track version counter" in c.theirs and "inference_mode()" in c.before
        and (to := re.findall(r"\b(v\d+)\.data = ", c.before)) and not {*to, *descended(to, c.before)}.isdisjoint(re.findall(r"v\d+", c.statement)),
    ),
    Explained(
        "samples of a Function",
        "A Function that says generate_vmap_rule is run sample by sample: what it saved is not touched by a change of what the map returns, which "
        "is in C order.",
        lambda c: (c.kind == "strides" and "vmap(Context.apply" in c.statement)
        or (c.kind == "not refused" and re.search(r"has been modified by an inplace.*which is output \d+ of Vmapped", c.theirs)),
    ),
    Explained(
        "versions of other memory",
        "The counter of what x.set_(…) has left goes on with the views of that; in PyTorch it stays with x.",
        lambda c: c.kind == "value" and (asked := re.search(r"(v\d+)\._version$", c.statement)) and re.search(rf"\b{asked[1]}\.set_\(", c.before),
    ),
    Explained(
        "other memory for a view",
        "What x.set_(…) makes of a view is no view here; in PyTorch it stays one, whose base has been changed.",
        lambda c: (c.kind in ("requires_grad", "leaf", "history") and re.search(rf"\b{c.name}\.set_\(", c.before))
        or (c.kind == "not refused" and ".set_(" in c.before
        and re.search(r"A view was created in \w+ mode and its base or another view of its base has been modified", c.theirs)),
    ),
    Explained(
        "steps of parameters that were given another shape",
        "PyTorch's optimizers broadcast states and parameters against each other; here a state has the shape of its parameter.",
        lambda c: c.kind == "raised" and "The shape of a parameter, " in c.mine and re.search(r"\.data = |\.set_\(", c.before),
    ),
)
