"""Client libraries for the wire protocol: Trio and asyncio, over one core."""
