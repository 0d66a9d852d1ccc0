"""Work in many processes of a Dask cluster; needs the extra `rankwood[dask]`, imported inside functions only."""
