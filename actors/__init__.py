"""What acts: service, storage, search, pool, connection, and the hosts; see README.md."""
