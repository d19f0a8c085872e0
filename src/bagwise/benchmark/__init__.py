"""Methods on data sets by a protocol, beside the published figures."""
