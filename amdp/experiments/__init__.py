"""From a short spec to runs on disk."""
