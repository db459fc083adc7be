"""What is said and what is true of it. No I/O, no clock, no event loop; see README.md."""
