#!/usr/bin/env python3
"""Builds what a release offers, in `target/dist` or the folder of `--out`; with `--check`, builds twice and compares.

For each architecture: a static program of musl in an archive with its licences and the pipelines, and a wheel of that
program and the native module (`manylinux_2_28`). For both: an OCI image, an SBOM, install.sh, SHA256SUMS; with
RUNNER_SIGNING_KEY, an SSH key, SHA256SUMS.sig. Needs Rust, Python, git and the registries of crates and Python packages:
zig compiles C and links. The same commit gives the same bytes in every folder: `--check` builds a clone of it elsewhere.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
TARGET_DIR = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).absolute()
CARGO_HOME = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")).absolute()
TOOLS = Path(os.environ.get("RUNNER_DIST_TOOLS", TARGET_DIR / "tools"))
# The architectures by the names of Rust, with those of OCI.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# certifi: the certificates of the image, which is otherwise empty.
PACKAGES = ["ziglang==0.17.1", "cargo-zigbuild==0.24.1", "maturin==1.16.0", "certifi==2026.10.19.post1"]
CYCLONEDX = "0.5.9"


def run(*command, **settings):
    return subprocess.run([str(part) for part in command], cwd=settings.pop("cwd", ROOT), check=True, **settings)


def printed(*command, **settings):
    return run(*command, stdout=subprocess.PIPE, encoding="utf-8", **settings).stdout.strip()


def tools():
    """Installs zig and its companions, and the SBOM's author, once."""
    venv, cyclonedx = TOOLS / "dist", TOOLS / f"cargo-cyclonedx-{CYCLONEDX}"
    if not (venv / "installed").is_file() or (venv / "installed").read_text() != repr(PACKAGES):
        run(sys.executable, "-m", "venv", "--clear", venv)
        run(venv / "bin/pip", "install", "-q", *PACKAGES)
        (venv / "installed").write_text(repr(PACKAGES))
    if not (cyclonedx / "bin/cargo-cyclonedx").is_file():
        own = {**os.environ, "CARGO_TARGET_DIR": str(cyclonedx / "target")}
        run("cargo", "install", "cargo-cyclonedx", "--version", CYCLONEDX, "--locked", "--debug", "--root", cyclonedx, env=own)
        shutil.rmtree(cyclonedx / "target")
    os.environ["PATH"] = os.pathsep.join([f"{venv}/bin", f"{cyclonedx}/bin", os.environ["PATH"]])
    return venv


def environment(*flags):
    """The environment of a build: no path of this machine gets into what is compiled."""
    sysroot = printed("rustc", "--print", "sysroot")
    # Of several that match, the last one counts.
    moved = {f"{sysroot}/lib/rustlib/src/rust": "/rust", CARGO_HOME: "/cargo", ROOT: "/runner", TARGET_DIR: "/target"}
    flags = [*(f"--remap-path-prefix={path}={name}" for path, name in moved.items()), *flags]
    # Else C has the time of the commit for which it was compiled first, also in a program of a later one.
    c_flags = ["-Wno-builtin-macro-redefined", '-D__DATE__=""', '-D__TIME__=""']
    own = {
        "CARGO_TARGET_DIR": str(TARGET_DIR),
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(flags),
        "TARGET_CFLAGS": " ".join([*c_flags, *(f"-ffile-prefix-map={path}={name}" for path, name in moved.items())]),
        "RUSTC_WRAPPER": str(ROOT / ".ci/dist/rustc.py"),
        "LC_ALL": "C.UTF-8",
    }
    return {**os.environ, **own}


def build_program(architecture):
    """Compiles the static program."""
    target = f"{architecture}-unknown-linux-musl"
    # As `runner/cli/build.rs` has it for glibc: a program at a fixed place need not be relocated at every start.
    # Rust's own linker folds functions of equal code, which zig's refuses.
    linking = ["-Clinker=rust-lld", "-Clink-arg=--icf=all"]
    own = environment("-Ctarget-feature=+crt-static", "-Crelocation-model=static", *linking)
    run("rustup", "target", "add", target, f"{architecture}-unknown-linux-gnu", stderr=subprocess.DEVNULL)
    run("cargo", "zigbuild", "--profile", "lto", "--locked", "-p", "runner", "--target", target, env=own)
    return TARGET_DIR / target / "lto/runner"


def licences(architecture):
    """The licences of all crates in the program, as text: each text once, after the names of its crates."""
    platform = f"{architecture}-unknown-linux-musl"
    metadata = json.loads(printed("cargo", "metadata", "--locked", "--format-version=1", "--filter-platform", platform))
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node["deps"] for node in metadata["resolve"]["nodes"]}
    (first,) = (id for id, package in packages.items() if package["name"] == "runner")
    reached, left = {first}, [first]
    while left:
        deps = (dep for dep in nodes[left.pop()] if any(kind["kind"] is None for kind in dep["dep_kinds"]))
        left.extend(new := {dep["pkg"] for dep in deps} - reached)
        reached |= new
    named, texts = [], {}
    for package in sorted((packages[id] for id in reached), key=lambda package: (package["name"], package["version"])):
        if package["source"] is None:
            continue
        name = f"{package['name']} {package['version']}"
        named.append(f"{name}: {package['license']}")
        for file in sorted(Path(package["manifest_path"]).parent.iterdir()):
            if file.is_file() and file.name.upper().startswith(("LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE")):
                texts.setdefault(file.read_text("utf-8", "replace").strip(), []).append(name)
    named += ["Rust's standard library: MIT OR Apache-2.0", "musl libc: MIT, Copyright © 2005-2026 Rich Felker, et al."]
    parts = ["The program contains:\n\n" + "\n".join(named)]
    parts += [", ".join(dict.fromkeys(names)) + ":\n\n" + text for text, names in texts.items()]
    return f"\n\n{'-' * 80}\n\n".join(parts) + "\n"


def program_files(architecture, program):
    """The files of an installation: names and contents."""
    files = {"bin/runner": program.read_bytes(), "share/runner/THIRD-PARTY.txt": licences(architecture).encode()}
    for name in printed("git", "ls-files", "LICENSE-*", "pipelines").splitlines():
        files[f"share/runner/{name}"] = (ROOT / name).read_bytes()
    return files


def tar(files, folders=()):
    """A tar archive with these files, sorted, of root and of the time of the commit; and folders that anyone may write."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        parents = {str(parent) for name in files for parent in Path(name).parents} - {"."}
        for name in sorted({*files, *folders, *parents}):
            entry = tarfile.TarInfo(name)
            entry.mtime = int(os.environ["SOURCE_DATE_EPOCH"])
            if name in files:
                entry.size = len(files[name])
                entry.mode = 0o755 if "bin" in Path(name).parts else 0o644
                archive.addfile(entry, io.BytesIO(files[name]))
            else:
                entry.type = tarfile.DIRTYPE
                entry.mode = 0o1777 if name in folders else 0o755
                archive.addfile(entry)
    return buffer.getvalue()


def compressed(data):
    return gzip.compress(data, 6, mtime=0)


def build_wheel(architecture, files, sboms, out):
    """The wheel: the program's files as they are, and the native module, compiled for glibc 2.28."""
    data = ROOT / "runner/python/data"
    shutil.rmtree(data, ignore_errors=True)
    for name, content in files.items():
        path = data / ("scripts/runner" if name == "bin/runner" else f"data/{name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o755 if name == "bin/runner" else 0o644)
    command = ["maturin", "build", "--release", "--locked", "--zig", "--compatibility", "manylinux_2_28", "--out", out]
    command += ["--target", f"{architecture}-unknown-linux-gnu", *(f"--sbom-include={sbom}" for sbom in sboms)]
    run(*command, env=environment())
    shutil.rmtree(data)


class Image:
    """An OCI image in an archive, which `podman load`, `docker load` and skopeo read.

    A Docker whose images are not containerd's reads Docker's own index alone: one image, and tag, by architecture.
    """

    def __init__(self):
        self.blobs, self.of_docker = {}, []

    def put(self, media_type, data, **more):
        data = data if isinstance(data, bytes) else json.dumps(data, sort_keys=True).encode()
        digest = hashlib.sha256(data).hexdigest()
        self.blobs[f"blobs/sha256/{digest}"] = data
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data), **more}

    def put_architecture(self, architecture, files, certificates, created):
        """The manifest of an image for an architecture: the program alone, with certificates and folders to write in."""
        files = {f"usr/local/{name}": data for name, data in files.items()}
        layer = tar({**files, "etc/ssl/certs/ca-certificates.crt": certificates}, ["tmp", "work"])
        platform = {"architecture": ARCHITECTURES[architecture], "os": "linux"}
        labels = {"org.opencontainers.image.title": "runner", "org.opencontainers.image.version": VERSION}
        config = {
            **platform,
            "created": created,
            "config": {
                "Entrypoint": ["/usr/local/bin/runner"],
                "Env": ["PATH=/usr/local/bin"],
                "Labels": {**labels, "org.opencontainers.image.licenses": "MIT OR Apache-2.0"},
                "WorkingDir": "/work",
            },
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
            "history": [{"created": created, "created_by": ".ci/dist/build.py"}],
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": self.put("application/vnd.oci.image.config.v1+json", config),
            "layers": [self.put("application/vnd.oci.image.layer.v1.tar+gzip", compressed(layer))],
        }
        path = lambda blob: f"blobs/sha256/{blob['digest'].removeprefix('sha256:')}"
        tags = [f"runner:{VERSION}-{platform['architecture']}"]
        layers = [path(layer) for layer in manifest["layers"]]
        self.of_docker.append({"Config": path(manifest["config"]), "RepoTags": tags, "Layers": layers})
        return self.put(manifest["mediaType"], manifest, platform=platform)

    def archive(self, manifests):
        """The archive of the images for all architectures."""
        index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json"}
        name = {"org.opencontainers.image.ref.name": f"runner:{VERSION}"}
        top = self.put(index["mediaType"], {**index, "manifests": manifests}, annotations=name)
        layout = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "manifest.json": json.dumps(self.of_docker).encode()}
        return tar({**layout, "index.json": json.dumps({**index, "manifests": [top]}).encode(), **self.blobs})


def write_sboms(out):
    """The components of the program and of the native module, as CycloneDX in JSON."""
    for folder, name in {"runner/cli": "runner", "runner/python": "runner-python"}.items():
        options = ["--manifest-path", f"{folder}/Cargo.toml", "--format", "json", "--override-filename", "sbom"]
        run("cargo", "cyclonedx", *options)
        text = (ROOT / folder / "sbom.json").read_text()
        (out / f"{name}-{VERSION}.cdx.json").write_text(text.replace(str(ROOT), "/runner"))
        # It writes one beside each manifest of the workspace.
        for manifest in printed("git", "ls-files", "*Cargo.toml").splitlines():
            (ROOT / Path(manifest).parent / "sbom.json").unlink(missing_ok=True)
    return sorted(out.glob("*.cdx.json"))


def sign(out):
    """Signs the checksums with the releaser's key, if there is one."""
    key = os.environ.get("RUNNER_SIGNING_KEY")
    if not key:
        print("nothing is signed: RUNNER_SIGNING_KEY does not name an SSH key")
        return
    run("ssh-keygen", "-q", "-Y", "sign", "-n", "file", "-f", Path(key).absolute(), out / "SHA256SUMS")


def build(out, architectures):
    os.environ["SOURCE_DATE_EPOCH"] = printed("git", "log", "-1", "--format=%ct")
    if printed("git", "status", "--porcelain"):
        print("note: some files are not committed; a build of the commit gives other bytes")
    venv = tools()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    certificates = Path(printed(venv / "bin/python", "-m", "certifi")).read_bytes()
    created = printed("git", "log", "-1", "--format=%cd", "--date=format-local:%Y-%m-%dT%H:%M:%SZ", env={**os.environ, "TZ": "UTC"})
    image, manifests, sboms = Image(), [], write_sboms(out)
    for architecture in architectures:
        program = build_program(architecture)
        files = program_files(architecture, program)
        name = f"runner-{VERSION}-{architecture}-unknown-linux-musl"
        (out / f"{name}.tar.gz").write_bytes(compressed(tar({f"{name}/{file}": data for file, data in files.items()})))
        manifests.append(image.put_architecture(architecture, files, certificates, created))
        build_wheel(architecture, files, sboms, out)
    (out / f"runner-{VERSION}-image.tar").write_bytes(image.archive(manifests))
    shutil.copy(ROOT / ".ci/dist/install.sh", out)
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(out.iterdir())]
    (out / "SHA256SUMS").write_text("".join(sums))
    sign(out)
    print((out / "SHA256SUMS").read_text(), end="")


def check(out, architectures):
    """Builds the commit again, in a clone in another folder and with another target folder, and compares."""
    with tempfile.TemporaryDirectory() as folder:
        clone, again = Path(folder) / "elsewhere/clone", Path(folder) / "out"
        run("git", "clone", "-q", ROOT, clone)
        own = {**os.environ, "CARGO_TARGET_DIR": f"{folder}/target", "RUNNER_DIST_TOOLS": str(TOOLS)}
        own.pop("RUNNER_SIGNING_KEY", None)
        run(clone / ".ci/dist/build.py", "--out", again, *architectures, cwd=clone, env=own)
        first, second = ((dir / "SHA256SUMS").read_text().splitlines() for dir in (out, again))
    different = sorted(set(first) ^ set(second))
    print(*different or ["two builds in two folders gave the same bytes"], sep="\n")
    sys.exit(bool(different))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=TARGET_DIR / "dist")
    parser.add_argument("--check", action="store_true", help="build twice, and compare")
    parser.add_argument("architectures", nargs="*", metavar="ARCHITECTURE", help="x86_64, aarch64 (default: both)")
    args = parser.parse_args()
    architectures = args.architectures or list(ARCHITECTURES)
    if unknown := set(architectures) - set(ARCHITECTURES):
        parser.error(f"{', '.join(sorted(unknown))}: there are {', '.join(ARCHITECTURES)}")
    out = args.out.absolute()
    build(out, architectures)
    if args.check:
        check(out, architectures)


if __name__ == "__main__":
    main()
