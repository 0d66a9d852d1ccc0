"""The model: trees as arrays, the ensemble, its file, its shape, and which nodes documents visit."""
