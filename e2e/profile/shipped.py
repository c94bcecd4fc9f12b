"""The profiles that come with the project."""

from __future__ import annotations

from pathlib import Path

from e2e.errors import ProfileError
from e2e.profile.problems import did_you_mean


def shipped_folder() -> Path:
    """`profiles/` of a checkout, or its copy in an installed package."""
    package = Path(__file__).parent
    installed = package / "shipped"
    return installed if installed.is_dir() else package.parents[1] / "profiles"


def names() -> list[str]:
    """The names of the shipped profiles, in alphabetical order."""
    return sorted(file.stem for file in shipped_folder().glob("*.yaml"))


def find(name_or_path: str) -> Path:
    """The file of a shipped profile by its name, or of any profile by its path.

    Raises ProfileError for a name that no shipped profile has.
    """
    path = Path(name_or_path).expanduser()
    if path.suffix in (".yaml", ".yml") or "/" in name_or_path:
        return path
    file = shipped_folder() / f"{name_or_path}.yaml"
    if not file.is_file():
        known = names()
        raise ProfileError(
            f"there is no profile {name_or_path!r}" + did_you_mean(name_or_path, known),
            mend=f"the shipped ones are {', '.join(known)}; "
            "name a file of your own with its path, ./my-profile.yaml",
        )
    return file
