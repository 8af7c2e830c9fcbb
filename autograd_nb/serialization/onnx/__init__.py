"""Modules and functions as ONNX files; see `exporting.export`."""
