"""The commands of `higl`, one module each. A module is imported when its command is called."""
