"""Which occupancy measure is nearest in relative entropy: one interface, many backends."""
