"""Stages around a tool call that know nothing of the tools: deadline and spill (SPEC 12)."""
