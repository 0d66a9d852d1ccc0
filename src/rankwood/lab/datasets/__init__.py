"""Public data sets: the catalogue, downloads, unpacking."""
