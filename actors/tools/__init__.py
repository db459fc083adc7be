"""The five model tools over one query service (SPEC 10, 11)."""
