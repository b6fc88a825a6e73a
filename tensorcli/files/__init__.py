"""Tensors in files: npy, npz, safetensors, csv, tsv and pt; knows neither language nor terminal."""
