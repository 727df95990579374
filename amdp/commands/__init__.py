"""Commands of the command line that need files of their own."""
