"""Differences from PyTorch that are meant, each with its reason and a test that is as narrow as the reason.

A statement with such a difference is taken out of its program, and the rest is compared (`check.compared`), but for what only makes
a name unreadable: the name is passed over.
"""

from __future__ import annotations

import re

from .reasons.case import Case, Explained
from .reasons.conjugates import CONJUGATES
from .reasons.graph import GRAPH
from .reasons.nothing import NOTHING
from .reasons.transforms import TRANSFORMS
from .reasons.trifling import TRIFLING
from .reasons.values import VALUES

EXPLAINED = (
    Explained("trifles", "`reasons.trifling` says of each what it is.", lambda case: any(holds(case) for holds in TRIFLING)),
    *GRAPH, *TRANSFORMS, *NOTHING, *VALUES, *CONJUGATES,
)  # fmt: skip
COPIED = ("exchanged data", "what nodes keep", "saved on the CPU")  #: which `check.by_copies` looks at more closely
#: found without a statement to test
ATOMIC = "atomic errors"  # a backward pass that fails has changed no gradient here, in PyTorch it may have done a part
ROUNDING = "rounding decides"  # PyTorch's own run differs as much if the numbers made are moved by a few units in the last place
UNREADABLE = "unreadable views"  # PyTorch does not look at one of several views whose base was changed since; here it has values
LIMIT = "limits of compiled calls"  # docs/compile.md
LOOSE = "loose views"  # views that say that they require grad, but lead nowhere: what is computed of them has a history there, and may be refused
CONSTANT = "what depends on nothing"  # a derivative that is the same whatever it could depend on may have a history or none
OVERLAP = "reads come before writes"  # an op in place reads other elements of the memory that it writes: PyTorch may read them written
GIVEN = "given gradients"  # what a pass or x.grad is given has other memory than the gradient here, in PyTorch the gradient may be a view of it
TRIFLES = "trifles"  # whether a gradient that depends on nothing (a second derivative of zeros) has a history


def read_first(statement: str) -> str:
    """An op in place with copies of what it reads besides; other statements as they are."""
    head, colon, inner = statement.rpartition(":\n    ")  # in a mode
    if colon and head.startswith("with ") and "\n" not in head + inner:
        return head + colon + read_first(inner)
    target = r"(?:v\d+ = )?(?:v\d+(?:\.\w+\(\))*[^=(]*|fit\(v\d+, [^)]*\)\))\.\w+_\("
    found = re.match(rf"({target}|v\d+(?:\.\w+(?:\(\))?)*(?:\[.*\])? (?:[-+*/%]|//|\*\*)?= )(.*)", statement, re.S)
    if found is None or re.match(r"v\d+ = $", found[1]):
        return statement
    return found[1] + re.sub(r"\bv\d+\b", r"\g<0>.clone()", found[2])


def given_copied(statement: str) -> str:
    """A statement in which passes, and assignments to x.grad, are given copies; the latter only of what shows conjugates or negatives."""
    copied = re.sub(r"(\.backward\()(v\d+(?:\.\w+(?:\(\))?)*)(?=[,)])", r"\1\2.clone()", statement)
    return re.sub(r"(\.grad = )(v\d+(?:\.\w+(?:\(\))?)*)(?=\n|;|$)", r"\1\2.resolve_conj().resolve_neg()", copied)


def explanation(case: Case) -> str:
    """The name of what explains a difference, or nothing."""
    return next((e.name for e in EXPLAINED if e.holds(case)), "")
