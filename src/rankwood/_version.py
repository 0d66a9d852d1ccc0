"""The version of rankwood."""

__version__ = "0.1.0"
