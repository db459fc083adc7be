"""The labelled relevance set and its scorer. Start reading at README.md."""
