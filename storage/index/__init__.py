"""The derived full-text index: one file, one writer, many snapshot readers. Start reading at README.md."""
