"""The images and the compose file, as far as they can be looked at without a Docker daemon."""

import re
import shutil
import subprocess
import tomllib
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.api.reading import MAX_BODY

ROOT = Path(__file__).parents[2]
IMAGES = sorted((ROOT / "docker").glob("*.Dockerfile"))
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = sorted(name for name, service in SERVICES.items() if "build" in service)


def lines(image: Path, word: str) -> list[str]:
    whole = image.read_text().replace("\\\n", " ")
    return re.findall(rf"^{word}\s+(.*)$", whole, re.MULTILINE)


@pytest.mark.parametrize("image", IMAGES, ids=lambda image: image.name)
class TestImage:
    def test_it_copies_what_there_is_and_what_the_build_is_given(self, image: Path) -> None:
        given = {line.lstrip("!") for line in (ROOT / ".dockerignore").read_text().split()}
        sources = [source for copy in lines(image, "COPY") for source in copy.split()[:-1]]
        assert {"app", "backend", "workers", "migrations", "constraints.txt"} <= set(sources)
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())
        built = project["tool"]["hatch"]["build"]["targets"]["wheel"]
        assert {*built["packages"], *built["force-include"]} <= set(sources)
        for source in sources:
            assert (ROOT / source).exists()
            assert source in given

    def test_it_ends_as_a_user_without_rights_and_tells_its_health(self, image: Path) -> None:
        assert lines(image, "USER")[-1] == "10001"
        assert len(lines(image, "HEALTHCHECK")) == 1

    def test_it_holds_no_secret_and_the_pinned_versions(self, image: Path) -> None:
        text = image.read_text()
        assert not re.search(r"(?i)password\s*=|token\s*=", text)
        assert "--constraint constraints.txt" in text
        assert ("torch==2.13.0" in text) == (image.name == "worker.Dockerfile")


def test_the_proxy_alone_has_open_ports() -> None:
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["proxy"]
    assert COMPOSE["networks"]["inside"]["internal"] is True
    way_out = {name for name, each in SERVICES.items() if "way-out" in each["networks"]}
    assert way_out == {"web", "worker", "worker-cuda"}
    for name in set(SERVICES) - {"proxy"}:
        assert set(SERVICES[name]["networks"]) <= {"inside", "way-out"}


def test_the_proxy_alone_is_believed_about_visitors() -> None:
    allowed = SERVICES["web"]["environment"]["FORWARDED_ALLOW_IPS"]
    inside = COMPOSE["networks"]["inside"]["ipam"]["config"][0]
    assert SERVICES["proxy"]["networks"]["inside"]["ipv4_address"] == allowed
    assert ip_address(allowed) in ip_network(inside["subnet"])
    assert ip_address(allowed) not in ip_network(inside["ip_range"])  # what others are given


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_has_few_rights_and_an_end_to_what_it_takes(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges" in service["security_opt"]
    assert service["mem_limit"]
    assert service["pids_limit"] <= 4096


def test_the_database_is_used_by_a_role_that_is_no_superuser() -> None:
    script = (ROOT / "docker" / "make-role").read_text()
    assert "CREATE ROLE stageflow LOGIN NOSUPERUSER" in script
    assert "POSTGRES_USER" not in SERVICES["postgres"]["environment"]
    mounted = dict(each.split(":")[:2] for each in SERVICES["postgres"]["volumes"])
    assert mounted["./make-role"].startswith("/docker-entrypoint-initdb.d/")


def test_proxy_and_dashboard_take_bodies_of_the_same_size() -> None:
    most = re.search(r"max_size (\d+)MiB", (ROOT / "docker" / "Caddyfile").read_text())
    config = tomllib.loads((ROOT / "app" / ".streamlit" / "config.toml").read_text())
    assert most is not None
    assert int(most[1]) == config["server"]["maxUploadSize"] + MAX_BODY // 2**20


@pytest.mark.parametrize(("image", "extras"), [("web", ()), ("worker", ("worker", "kubernetes"))])
def test_packages_have_hashes_and_the_versions_that_are_tested(
    image: str, extras: tuple[str, ...]
) -> None:
    text = (ROOT / "constraints.txt").read_text().lower().replace("_", "-")
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE))
    lock = (ROOT / "docker" / f"{image}.lock").read_text().replace("\\\n", " ")
    locked = [line.split() for line in lock.splitlines() if line.strip()]
    versions = dict(words[0].split("==") for words in locked)
    assert {name: pinned.get(name, version) for name, version in versions.items()} == versions
    assert all("--hash=sha256:" in " ".join(words) for words in locked)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"]]
    asked += [each for extra in extras for each in project["optional-dependencies"][extra]]
    needed = {re.split(r"[^\w.-]", each)[0].lower() for each in asked}
    assert needed - set(versions) == ({"torch"} if image == "worker" else set())
    assert f"--require-hashes --requirement {image}.lock" in " ".join(
        lines(ROOT / "docker" / f"{image}.Dockerfile", "RUN")
    )


def test_base_images_get_the_digests_that_a_registry_tells(tmp_path: Path) -> None:
    """Again where they have older ones, and those of ours none."""
    for file in ("pin-images", "compose.yaml", *(image.name for image in IMAGES)):
        shutil.copy(ROOT / "docker" / file, tmp_path)
    registry = tmp_path / "bin" / "docker"
    registry.parent.mkdir()
    for digest in ("a" * 64, "b" * 64):
        registry.write_text(f'#!/bin/sh\necho "sha256:{digest}"\n')
        registry.chmod(0o755)
        path = {"PATH": f"{registry.parent}:/usr/bin:/bin"}
        subprocess.run([tmp_path / "pin-images"], env=path, check=True)
        pinned = yaml.safe_load((tmp_path / "compose.yaml").read_text())["services"]
        for name, service in SERVICES.items():
            tag = "" if "build" in service else f"@sha256:{digest}"
            assert pinned[name]["image"] == service["image"].partition("@")[0] + tag
        for image in IMAGES:
            assert lines(tmp_path / image.name, "FROM") == [
                lines(image, "FROM")[0].partition("@")[0] + f"@sha256:{digest}"
            ]
    registry.write_text("#!/bin/sh\necho unauthorized\n")
    assert subprocess.run([tmp_path / "pin-images"], env=path, capture_output=True).returncode == 1


@pytest.mark.parametrize("name", OURS)
def test_our_services_have_few_rights_and_their_secrets_from_files(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert set(service["secrets"]) == {"stageflow_database_url", "stageflow_redis_url"}
    for variable, value in service["environment"].items():
        assert not re.search("URL|PASSWORD|TOKEN", variable) or variable == "STAGEFLOW_PUBLIC_URL"
        assert "postgresql:" not in str(value)


@pytest.mark.parametrize("name", OURS)
def test_our_services_share_what_hosts_share_and_no_home(name: str) -> None:
    service = SERVICES[name]
    assert service["volumes"] == ["shared:/shared"]
    assert service["environment"]["STAGEFLOW_SHARED"] == "/shared"
    image = ROOT / "docker" / Path(service["build"]["dockerfile"]).name
    assert "STAGEFLOW_HOME=/state" in image.read_text()
    assert lines(image, "VOLUME") == ["/state"]
    assert any("/state /shared" in run for run in lines(image, "RUN"))


def test_every_secret_and_volume_that_is_used_is_declared() -> None:
    for service in SERVICES.values():
        assert set(service.get("secrets", [])) <= set(COMPOSE["secrets"])
        named = {v.partition(":")[0] for v in service.get("volumes", []) if not v.startswith(".")}
        assert named <= set(COMPOSE["volumes"])
        assert set(service.get("depends_on", {})) <= set(SERVICES)


def test_the_secrets_are_written_once_and_by_their_names(tmp_path: Path) -> None:
    script = shutil.copy(ROOT / "docker" / "make-secrets", tmp_path)
    subprocess.run([script], check=True)
    written = {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    assert set(written) == {Path(each["file"]).name for each in COMPOSE["secrets"].values()}
    password = written["database_password"]
    assert password != written["postgres_password"]
    assert len(password) == 48
    assert f":{password}@postgres/" in written["stageflow_database_url"]
    assert (tmp_path / "secrets").stat().st_mode & 0o077 == 0
    again = subprocess.run([script], check=False, capture_output=True)
    assert again.returncode == 1
    assert (tmp_path / "secrets" / "database_password").read_text() == password
