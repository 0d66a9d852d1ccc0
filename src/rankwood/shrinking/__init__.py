"""Models made cheaper without training anew."""
