"""The model: trees as arrays, the ensemble, its file, its shape, and what data visits of it."""
