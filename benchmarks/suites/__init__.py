"""One file a suite. A suite is a dictionary `CASES`: a name, and a function from an effort to rows."""
