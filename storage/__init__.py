"""What is kept: journal, index, readers of foreign logs. SQL and files, never a socket; see README.md."""
