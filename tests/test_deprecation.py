"""What is deprecated warns where it is called, works as before, and is gone in time."""

from __future__ import annotations

import importlib
import pkgutil
import tomllib
import warnings
from pathlib import Path

import pytest

import autograd_nb
from autograd_nb.errors import DEPRECATED, deprecated, version


@pytest.fixture(autouse=True)
def own_table():
    before = dict(DEPRECATED)
    yield
    DEPRECATED.clear()
    DEPRECATED.update(before)


def test_a_function_warns_at_the_line_that_calls_it():
    @deprecated(since="0.2", gone="0.3", instead="new")
    def old(x, *, by=2):
        """Return x times ``by``."""
        return x * by

    with pytest.warns(DeprecationWarning, match=r"^old is deprecated since 0\.2 and will be gone in 0\.3: use new$") as caught:
        assert old(3, by=4) == 12
    assert caught[0].filename == __file__
    assert len(caught) == 1
    assert old.__doc__ == "Return x times ``by``.\n\nOld is deprecated since 0.2 and will be gone in 0.3: use new.\n"
    assert old.__name__ == "old"
    assert old.__deprecated__ in str(caught[0].message)


def test_a_class_warns_when_it_is_made_and_stays_itself():
    class Base:
        def __init__(self, x):
            self.x = x

    Old = deprecated(since="0.2", gone="0.3")(Base)
    assert Old is Base
    with pytest.warns(DeprecationWarning, match=r"Base is deprecated since 0\.2 and will be gone in 0\.3$") as caught:
        assert isinstance(Old(1), Base)
    assert caught[0].filename == __file__


def test_methods_and_what_is_not_called():
    class Kind:
        @deprecated(since="0.2", gone="1.0", instead="Kind.new")
        def old(self):
            return self

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kind = Kind()
    with pytest.warns(DeprecationWarning, match=r"^Kind\.old is deprecated .* use Kind\.new$"):
        assert kind.old() is kind


@pytest.mark.parametrize("since, gone", [("0.3", "0.3"), ("0.10", "0.9"), ("1.0", "0.9.9")])
def test_it_goes_after_it_was_deprecated(since, gone):
    with pytest.raises(ValueError, match="must be a later version"):
        deprecated(since=since, gone=gone)


@pytest.mark.parametrize("text", ["1", "0.2.dev1", "a.b", "1.2.3.4", ""])
def test_what_is_no_version(text):
    with pytest.raises(ValueError, match="is no MAJOR"):
        version(text)


def test_nothing_outlives_the_version_in_which_it_was_to_go():
    """Modules are imported, so that what they deprecate is known."""
    for module in pkgutil.walk_packages(autograd_nb.__path__, "autograd_nb."):
        if "__main__" not in module.name and not module.name.startswith("autograd_nb.checked") and not module.name.endswith("tensorboard"):
            importlib.import_module(module.name)
    now = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert {name: gone for name, gone in DEPRECATED.items() if version(gone) <= version(now)} == {}
