"""`maia simulate hops|scale|chaos|verify|state`: the overlay with thousands of brokers, in this process."""
