"""Work in many processes of a Dask cluster. Needs the extra `rankwood[dask]`, which is imported inside functions only."""
