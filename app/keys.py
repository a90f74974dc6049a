"""What tells two questions apart where answers are kept."""

from collections.abc import Callable

from backend.profiles.profile import Profile


def profile_key(profile: Profile) -> int:
    """The same for profiles that plans cannot tell apart: what is only a note is left out."""
    return hash((profile.name, profile.microbatch, profile.device, profile.graph))


BY_PROFILE: dict[str | type, Callable[[Profile], int]] = {Profile: profile_key}
"""`hash_funcs` of every function that is computed once per profile."""
