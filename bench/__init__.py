"""Measurements and checks that drive the product as its users do; see README.md of the rooms."""
