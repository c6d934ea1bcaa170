"""The environments' entries in Gymnasium's registry, which calls this when it is imported."""

from gymnasium.envs.registration import register

# The family is the artifact's: these names are for readers.
NAMES = ["Env", "Classic", "Hedging", "Lookup", "Options", "Stocks"]


def environments() -> None:
    """Registers `runner/NAME-v0` for each name, in the namespace `runner`."""
    for name in NAMES:
        register(
            id=f"{name}-v0",
            entry_point="runner.gymnasium:Env",
            vector_entry_point="runner.gymnasium:VectorEnv",
        )
