"""From a text or a function to machine code: compiling, the cache on disk, entry points."""
