"""The WebSocket edge: ports, connections, requests, authority. Start reading in ``server.py``."""
