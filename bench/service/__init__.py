"""How the service behaves under work: ``python -m session_query.bench.service``. See bench/README.md."""
