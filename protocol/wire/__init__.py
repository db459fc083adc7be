"""The wire protocol: messages, codecs, codes and the rules of a connection. No I/O."""
