"""The search engine alone, at ten thousand to a million events: corpus, comparison, measurements, results."""
