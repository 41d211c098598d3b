"""The commands, a file each, imported only when called: `run(command, arguments) -> exit code`."""
