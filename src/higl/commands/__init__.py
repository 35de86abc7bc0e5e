"""The subcommands of `higl`, one module for each group. A module is imported when one of its commands is called."""
