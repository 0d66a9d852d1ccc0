"""Shrinking: any tree ranker, also one that was trained well, made several times smaller, with a proof."""
