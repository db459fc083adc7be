"""The MCP host: the five tools for agents that speak the Model Context Protocol, over stdin and stdout.

Needs the extra ``mcp`` (the official SDK), except ``install``, ``launching`` and ``link``.
"""
