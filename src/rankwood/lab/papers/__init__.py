"""The experiments of papers as runs that can be interrupted, and the tables and figures made from them."""
