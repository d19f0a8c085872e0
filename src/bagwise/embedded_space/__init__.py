"""Methods that turn a bag into one vector."""
