"""How Sphinx makes the site of these pages (`make docs`)."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

from inventories import mapping  # noqa: E402 (it lies in _ext)

project = "autograd_nb"
copyright = "the authors of autograd_nb, Apache-2.0"  # noqa: A001
release = version = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

extensions = ["myst_nb", "sphinx.ext.intersphinx", "sphinx.ext.mathjax", "sphinx_copybutton", "reference", "sources"]
exclude_patterns = ["_ext", "_static", "README.md"]
nitpicky = True
# the types in signatures are shown as they are written; what pages link to is checked
nitpick_ignore_regex = [("py:class", r"(?!autograd_nb\.).*")]
show_warning_types = True

# ---- pages and the programs in them
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
nb_execution_mode = os.environ.get("AUTOGRAD_NB_DOCS_EXECUTE", "force")  # "off": the text alone, in seconds
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_merge_streams = True
nb_execution_show_tb = True
os.environ["AUTOGRAD_NB_QUIET"] = "1"
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH")]))

# kernels say at each start that they listen on this machine without encryption: what else the build says would drown in it
os.environ["IPYTHONDIR"] = str(HERE.parent / "out" / "ipython")
(HERE.parent / "out" / "ipython" / "profile_default").mkdir(parents=True, exist_ok=True)
(HERE.parent / "out" / "ipython" / "profile_default" / "ipython_kernel_config.py").write_text("c.IPKernelApp.log_level = 'ERROR'\n", encoding="utf-8")

# ---- links to other projects; without a network they are those in _ext/inventories.py
intersphinx_mapping = mapping(HERE.parent / "out")
intersphinx_timeout = 4

# ---- how it looks
html_theme = "furo"
html_title = f"autograd_nb {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
highlight_language = "none"
pygments_style = "friendly"
pygments_dark_style = "monokai"
python_maximum_signature_line_length = 160
smartquotes = False  # quotes in docstrings are Python's
toc_object_entries = False  # a thousand names in every page's sidebar; each page of the reference begins with a list of its own
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
