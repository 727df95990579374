"""Which policy is cheapest for these costs: one interface, many backends."""
