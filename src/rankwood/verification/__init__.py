"""Do two models score alike? On data, and on rows at every threshold."""
