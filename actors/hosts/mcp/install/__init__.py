"""Putting the server into other programs' configuration files, and taking it out again."""
