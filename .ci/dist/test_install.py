#!/usr/bin/env python3
"""Tests of install.sh on an invented release; where RUNNER_TEST_DIST names a built one, of its files in bare root folders.

The latter need root or user namespaces, and busybox or debootstrap.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import tarfile
import tempfile
import threading
import unittest
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

INSTALL = Path(__file__).resolve().parent / "install.sh"
DIST = os.environ.get("RUNNER_TEST_DIST")
# Each shell that is there.
SHELLS = [shell for shell in (["dash"], ["bash", "--posix"], ["busybox", "sh"]) if shutil.which(shell[0])]
QUICK = ["exec", "/usr/local/share/runner/pipelines/rppo_options.yaml", "--profile", "quick"]


def release(folder, architecture=platform.machine()):
    """A release whose program is a script."""
    name = f"runner-1.2.3-{architecture}-unknown-linux-musl"
    for path, text in {"bin/runner": "#!/bin/sh\necho runner 1.2.3\n", "share/runner/pipelines/a.yaml": "version: 1\n"}.items():
        path = folder / name / path
        path.parent.mkdir(parents=True)
        path.write_text(text)
        path.chmod(0o755)
    with tarfile.open(folder / f"{name}.tar.gz", "w:gz") as archive:
        archive.add(folder / name, name)
    shutil.rmtree(folder / name)
    archive = folder / f"{name}.tar.gz"
    (folder / "SHA256SUMS").write_text(f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  {archive.name}\n")
    return archive


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, without a log."""

    def log_message(self, *args):
        pass


class Invented(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name) / "a release"
        self.prefix = Path(temporary.name) / "a prefix"
        self.bin = Path(temporary.name) / "bin"
        for folder in (self.folder, self.bin):
            folder.mkdir()

    def install(self, *args, shell=SHELLS[0], **variables):
        path = f"{self.bin}:{os.environ['PATH']}"
        own = {**os.environ, "PATH": path, "PREFIX": str(self.prefix), **variables}
        return subprocess.run([*shell, INSTALL, *args], env=own, capture_output=True, text=True)

    def refused(self, ended, *texts):
        self.assertEqual(ended.returncode, 1, ended)
        for text in ("error: ", "hint: ", *texts):
            self.assertIn(text, ended.stderr)
        self.assertEqual(list(self.prefix.glob("**/*")), [])

    def test_installs_in_each_shell(self):
        release(self.folder)
        for shell in SHELLS:
            with self.subTest(shell=shell):
                ended = self.install(self.folder, shell=shell)
                self.assertEqual(ended.returncode, 0, ended.stderr)
                self.assertIn("runner 1.2.3 is installed", ended.stdout)
                self.assertIn(f'export PATH="{self.prefix}/bin:$PATH"', ended.stdout)
                self.assertIn("Next: runner exec", ended.stdout)
                files = sorted(str(path.relative_to(self.prefix)) for path in self.prefix.rglob("*") if path.is_file())
                self.assertEqual(files, ["bin/runner", "share/runner/pipelines/a.yaml"])
        on_path = self.install(self.folder, PATH=f"{self.prefix}/bin:{os.environ['PATH']}")
        self.assertNotIn("export PATH", on_path.stdout)

    def test_installs_into_the_home(self):
        release(self.folder)
        ended = self.install(self.folder, PREFIX="", HOME=str(self.prefix))
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertTrue((self.prefix / ".local/bin/runner").is_file())

    @unittest.skipUnless(shutil.which("curl") or shutil.which("wget"), "neither curl nor wget")
    def test_installs_from_a_url(self):
        release(self.folder)
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=self.folder))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        url = f"http://127.0.0.1:{server.server_port}"
        self.assertEqual(self.install(f"{url}/").returncode, 0)
        shutil.rmtree(self.prefix)
        self.refused(self.install(f"{url}/elsewhere"), "cannot get SHA256SUMS")

    def test_a_wrong_checksum_is_refused(self):
        archive = release(self.folder)
        archive.write_bytes(archive.read_bytes() + b"\0")
        self.refused(self.install(self.folder), f"the checksum of {archive.name}")

    def test_checksums_of_another_architecture_are_refused(self):
        release(self.folder, "riscv64")
        self.refused(self.install(self.folder), "does not name one archive")

    def test_other_machines_are_refused(self):
        release(self.folder)
        for system, machine, text in (("Linux", "riscv64", "riscv64"), ("Darwin", "arm64", "Darwin")):
            uname = self.bin / "uname"
            uname.write_text(f'#!/bin/sh\n[ "$1" = -s ] && echo {system} || echo {machine}\n')
            uname.chmod(0o755)
            self.refused(self.install(self.folder), f"there is no archive for {text}")

    @unittest.skipUnless(shutil.which("ssh-keygen"), "ssh-keygen is not installed")
    def test_a_signature_is_checked_where_signers_are_named(self):
        release(self.folder)
        signers = self.bin / "allowed signers"
        self.refused(self.install(self.folder, SIGNERS=str(signers)), "cannot get SHA256SUMS.sig")
        for name in ("releaser", "stranger"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.bin / name], check=True)
        signers.write_text(f"releases@example.org {(self.bin / 'releaser.pub').read_text()}")
        for name in ("stranger", "releaser"):
            signature = self.folder / "SHA256SUMS.sig"
            signature.unlink(missing_ok=True)
            sums = self.folder / "SHA256SUMS"
            subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-n", "file", "-f", self.bin / name, sums], check=True, stderr=subprocess.DEVNULL)
            ended = self.install(self.folder, SIGNERS=str(signers))
            if name == "stranger":
                self.refused(ended, "signed by nobody whom")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        shutil.rmtree(self.prefix)
        with open(self.folder / "SHA256SUMS", "a") as sums:
            sums.write("\n")
        self.refused(self.install(self.folder, SIGNERS=str(signers)), "signed by nobody whom")

    def test_an_empty_folder_is_refused(self):
        self.refused(self.install(self.folder), "cannot get SHA256SUMS")


@unittest.skipUnless(DIST, "RUNNER_TEST_DIST is unset")
class Built(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.root = Path(temporary.name)
        cls.dist = Path(DIST).absolute()

    def inside(self, root, *command, proc=True, **variables):
        """Runs a command in a root folder of its own, with `/proc`."""
        mount = f"mount -t proc proc '{root}/proc' && " if proc else ""
        script = f"{mount}exec chroot '{root}' \"$@\""
        own = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root", **variables}
        unshare = ["unshare", "--map-root-user", "--mount", "--pid", "--fork", "sh", "-c", script, "sh", *command]
        return subprocess.run(unshare, env=own, stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def ok(self, ended):
        self.assertEqual(ended.returncode, 0, ended)
        return ended.stdout

    def test_in_an_empty_root(self):
        root = self.root / "empty"
        root.mkdir()
        (archive,) = self.dist.glob(f"runner-*-{platform.machine()}-unknown-linux-musl.tar.gz")
        with tarfile.open(archive) as files:
            files.extractall(self.root, filter="tar")
        shutil.copytree(self.root / archive.name.removesuffix(".tar.gz"), root / "usr/local")
        run = partial(self.inside, root, "/usr/local/bin/runner")
        self.assertIn("runner ", self.ok(run("--version", proc=False)))
        # What is missing is said, with its remedy.
        doctor = run("doctor", proc=False)
        self.assertEqual(doctor.returncode, 3)
        for text in ("no `/proc/self/exe`", "mount -t proc", "no `/dev/null`", "no `/tmp`", "TMPDIR"):
            self.assertIn(text, doctor.stdout)
        refused = run(*QUICK, proc=False)
        self.assertEqual(refused.returncode, 3)
        self.assertIn("Is /proc mounted?", refused.stderr)
        self.assertIn("TMPDIR", run("init", proc=False).stderr)
        # With these it runs: no library, zone, locale or certificate is needed.
        for folder in ("proc", "tmp"):
            (root / folder).mkdir()
        self.assertIn("evaluation", self.ok(run(*QUICK)))

    @unittest.skipUnless(shutil.which("busybox"), "busybox is missing")
    def test_installs_with_busybox(self):
        root = self.root / "busybox"
        for folder in ("bin", "proc", "tmp", "dist"):
            (root / folder).mkdir(parents=True)
        shutil.copy(shutil.which("busybox"), root / "bin")
        self.ok(self.inside(root, "/bin/busybox", "--install", "/bin"))
        for file in self.dist.iterdir():
            os.link(file, root / "dist" / file.name) if os.stat(file).st_dev == os.stat(root).st_dev else shutil.copy(file, root / "dist")
        self.assertIn("Next:", self.ok(self.inside(root, "sh", "/dist/install.sh", PREFIX="/usr/local")))
        self.assertIn("stage", self.ok(self.inside(root, "runner", "plan", *QUICK[1:4])))

    @unittest.skipUnless(shutil.which("debootstrap") and os.geteuid() == 0, "debootstrap or root is missing")
    def test_installs_in_a_bare_debian(self):
        root = self.root / "debian"
        packages = "--include=python3,python3-venv,python3-pip"
        subprocess.run(["debootstrap", "--variant=minbase", packages, "stable", root], check=True, stdout=subprocess.DEVNULL)
        shutil.copytree(self.dist, root / "dist")
        # The network as this machine has it.
        certificates = Path(os.environ.get("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt"))
        for file in (Path("/etc/resolv.conf"), certificates):
            shutil.copy(file, root / "etc")
        compilers = "for name in cc gcc clang cargo; do command -v $name && exit; done; exit 1"
        self.assertEqual(self.inside(root, "sh", "-c", compilers).returncode, 1)
        self.ok(self.inside(root, "sh", "/dist/install.sh", PREFIX="/usr/local"))
        self.assertIn("evaluation", self.ok(self.inside(root, "runner", *QUICK)))
        # The wheel.
        self.ok(self.inside(root, "rm", "/usr/local/bin/runner"))
        self.ok(self.inside(root, "python3", "-m", "venv", "/venv"))
        (wheel,) = self.dist.glob(f"runner-*_{platform.machine()}.whl")
        pip = partial(self.inside, root, "/venv/bin/pip", PIP_CERT=f"/etc/{certificates.name}")
        self.ok(pip("install", "-q", f"/dist/{wheel.name}"))
        code = "import gymnasium, runner; print('runner/Options-v0' in gymnasium.registry)"
        self.assertEqual(self.ok(self.inside(root, "/venv/bin/python", "-c", code)), "True\n")
        self.assertIn("evaluation", self.ok(self.inside(root, "/venv/bin/runner", *QUICK)))

    @unittest.skipUnless(shutil.which("podman"), "podman is missing")
    def test_the_image(self):
        (image,) = self.dist.glob("runner-*-image.tar")
        loaded = self.ok(subprocess.run(["podman", "load", "-q", "-i", image], capture_output=True, text=True))
        name = loaded.strip().rsplit(" ", 1)[1]
        # Limits and a runtime that work inside another container, too.
        runtime = ["--runtime=runc"] if shutil.which("runc") else []
        limits = ["--ulimit=nofile=1024:1024", "--ulimit=nproc=1000:1000"]
        podman = ["podman", *runtime, "run", "--rm", "--network=none", *limits, name]
        self.assertIn("evaluation", self.ok(subprocess.run([*podman, *QUICK], capture_output=True, text=True)))
        self.assertIn("pipeline.yaml written", self.ok(subprocess.run([*podman, "init"], capture_output=True, text=True)))


if __name__ == "__main__":
    unittest.main()
