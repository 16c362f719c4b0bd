"""Options from `[tool.truekernel.COMMAND]` of the nearest pyproject.toml, by the names that they have on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cyclopts.config import Toml

from truekernel.errors import BadInputError, UnknownNameError

if TYPE_CHECKING:
    from cyclopts import App, ArgumentCollection

ROOT = ("tool", "truekernel")


class Settings(Toml):
    """As Toml, and a key that means nothing is answered with the nearest that does: a setting that is quietly ignored looks like one that works."""

    def __init__(self, commands: tuple[str, ...]) -> None:
        super().__init__("pyproject.toml", root_keys=ROOT, search_parents=True)
        self._commands = list(commands)

    def __call__(self, app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
        """Set the arguments of a command. Raises UnknownNameError for a command or key that does not exist, BadInputError for what is no table."""
        table = self.config
        for key in ROOT:
            table = table.get(key, {})
            if not isinstance(table, dict):
                raise BadInputError(f"{self.source}: [{'.'.join(ROOT)}] must be a table of commands")
        for command, options in table.items():
            if command not in self._commands:
                raise UnknownNameError(f"command in {self.source}, [tool.truekernel]", command, self._commands)
            if not isinstance(options, dict):
                raise BadInputError(f"{self.source}: [tool.truekernel.{command}] must be a table of options")
        if len(commands) == 1:
            known = [name[2:] for argument in arguments for name in argument.names if name.startswith("--")]
            for key in table.get(commands[0], {}):
                if key.replace("_", "-") not in known:
                    raise UnknownNameError(f"option in {self.source}, [tool.truekernel.{commands[0]}]", key, known)
        super().__call__(app, commands, arguments)
