"""session-query: search, trace and read what earlier agent sessions did."""
