"""What the five model tools take and say: pure, no I/O (SPEC 10)."""
