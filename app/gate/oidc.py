"""OpenID Connect: the authorization code flow with PKCE (Core 1.0 section 3.1; RFC 7636).

What has to last from the way out to the way back is in a cookie of the visitor's own browser.
"""

import base64
import time
from dataclasses import asdict, dataclass
from functools import lru_cache
from secrets import token_urlsafe
from typing import Any
from urllib.parse import urlsplit

import orjson
import requests
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from app.gate.rules import BACK
from backend.errors import StageflowError
from backend.people.person import Identity
from backend.services.people.accounts import SignInFailed
from backend.settings import Settings

SCOPE = "openid profile email"
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"]
"""Signatures with a provider's public key; never "none", never a shared secret."""
SECONDS = 10.0
KEYS_LAST = 3600.0
FLOW_LASTS = 600
"""Seconds that somebody has to sign in at the provider."""


class ProviderUnreachable(StageflowError):
    """The identity provider does not answer, or not as one."""

    advice = "Try again, or sign in with a password."


@dataclass(frozen=True, slots=True)
class Provider:
    """Addresses and public keys, from the provider's own document."""

    authorize: str
    token: str
    keys: Any


@dataclass(frozen=True, slots=True)
class PendingSignIn:
    """One visitor on the way: `state` ties the way back to this browser, `nonce` the identity
    to this flow, `verifier` the code to whoever asked for it."""

    state: str
    nonce: str
    verifier: str
    target: str

    def text(self) -> str:
        """For a cookie."""
        return base64.urlsafe_b64encode(orjson.dumps(asdict(self))).decode()


def flow_of(text: str) -> PendingSignIn:
    """Raises `SignInFailed` on what is no cookie of ours."""
    try:
        return PendingSignIn(**orjson.loads(base64.urlsafe_b64decode(text.encode())))
    except (ValueError, TypeError):
        raise _failed("the sign-in did not begin in this browser, or too long ago") from None


def is_offered(settings: Settings) -> bool:
    """Whether a provider is configured."""
    return bool(settings.oidc_issuer and settings.oidc_client_id)


def provider_name(settings: Settings) -> str:
    """What people know it by."""
    return urlsplit(settings.oidc_issuer).hostname or settings.oidc_issuer


def begin(settings: Settings, target: str) -> tuple[str, PendingSignIn]:
    """Where to send the visitor, and what to remember. Raises `ProviderUnreachable`."""
    flow = PendingSignIn(token_urlsafe(), token_urlsafe(), token_urlsafe(48), target)
    url, _ = _client(settings).create_authorization_url(
        _provider(settings).authorize,
        state=flow.state,
        nonce=flow.nonce,
        code_verifier=flow.verifier,
    )
    return url, flow


def finish(settings: Settings, flow: PendingSignIn, given: dict[str, str]) -> Identity:
    """Who came back. Raises `SignInFailed` and `ProviderUnreachable`."""
    if given.get("state") != flow.state:
        raise _failed("the sign-in did not begin in this browser")
    if "code" not in given:
        raise _failed(f"the provider answered {given.get('error', 'nothing')[:100]}")
    provider = _provider(settings)
    try:
        answer = _client(settings).fetch_token(
            provider.token, code=given["code"], code_verifier=flow.verifier, timeout=SECONDS
        )
        claims = _claims(answer["id_token"], provider, settings, flow)
    except requests.RequestException as fault:
        raise ProviderUnreachable(f"{provider_name(settings)}: {fault}") from None
    except (OAuthError, JoseError, KeyError, ValueError) as fault:
        raise _failed(f"the provider's answer is not valid: {fault}") from None
    return _identity(claims)


def _claims(
    token: str, provider: Provider, settings: Settings, flow: PendingSignIn
) -> dict[str, Any]:
    """The identity token's claims, its signature and Core 1.0 section 3.1.3.7 checked."""
    claims = jwt.decode(token, provider.keys, algorithms=ALGORITHMS).claims
    jwt.JWTClaimsRegistry(
        leeway=60,
        iss={"essential": True, "value": settings.oidc_issuer},
        aud={"essential": True, "value": settings.oidc_client_id},
        sub={"essential": True},
        exp={"essential": True},
        iat={"essential": True},
        nonce={"essential": True, "value": flow.nonce},
    ).validate(claims)
    return dict(claims)


def _identity(claims: dict[str, Any]) -> Identity:
    email = str(claims.get("email", "")) if claims.get("email_verified") is True else ""
    name = str(claims.get("preferred_username") or claims.get("name") or "")
    return Identity(str(claims["iss"]), str(claims["sub"]), name, email)


def _client(settings: Settings) -> OAuth2Session:
    return OAuth2Session(
        settings.oidc_client_id,
        settings.oidc_client_secret or None,
        scope=SCOPE,
        redirect_uri=settings.address + BACK,
        code_challenge_method="S256",
    )


def _provider(settings: Settings) -> Provider:
    return _discovered(settings.oidc_issuer, int(time.time() // KEYS_LAST))


@lru_cache(maxsize=4)
def _discovered(issuer: str, _hour: int) -> Provider:
    """Asked again every hour, because keys change."""
    try:
        document = _get(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if document["issuer"] != issuer:
            raise ValueError(f"it calls itself {document['issuer']}")
        keys = KeySet.import_key_set(_get(document["jwks_uri"]))
        return Provider(document["authorization_endpoint"], document["token_endpoint"], keys)
    except (requests.RequestException, KeyError, ValueError, JoseError) as fault:
        raise ProviderUnreachable(f"{issuer}: {fault}") from None


def _get(url: str) -> Any:
    answer = requests.get(url, timeout=SECONDS)
    answer.raise_for_status()
    return answer.json()


def _failed(why: str) -> SignInFailed:
    return SignInFailed(why, "Sign in again.")
