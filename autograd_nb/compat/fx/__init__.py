"""``torch.fx``: programs as graphs that Python rewrites, and modules whose code is written from them.

Tracing runs a program on stand-ins for values. This library's compiler needs none of it (`compiler` captures whole steps).
Source: https://docs.pytorch.org/docs/stable/fx.html
"""

from . import passes as passes
from .graph import Graph as Graph
from .graph_module import GraphModule as GraphModule
from .interpreter import Interpreter as Interpreter
from .interpreter import Transformer as Transformer
from .node import Node as Node
from .node import has_side_effect as has_side_effect
from .node import map_arg as map_arg
from .proxy import Proxy as Proxy
from .subgraph_rewriter import replace_pattern as replace_pattern
from .tracer import PH as PH
from .tracer import Tracer as Tracer
from .tracer import symbolic_trace as symbolic_trace
from .tracer import wrap as wrap
