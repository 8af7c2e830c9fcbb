"""The recorder and the engine. No op is named here: a node knows its rule, the engine knows only nodes."""
