"""Models served over HTTP: `rankwood serve`."""
