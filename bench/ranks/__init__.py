"""Programs that `bench.distributed` runs on several ranks, here and in PyTorch."""
