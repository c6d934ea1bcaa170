#!/usr/bin/env python3
"""rustc, for crates whose symbols do not depend on the clone's folder.

Cargo hashes the absolute path of a crate outside of its workspace into `-C metadata`, as of those that the Python module
depends on. Here that hash is of the crate's path in the clone, its target and its settings.
"""

import hashlib
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
rustc, *args = sys.argv[1:]
package = Path(os.environ.get("CARGO_MANIFEST_DIR", "/"))
if package.is_relative_to(ROOT):
    names = ("--crate-name", "--crate-type", "--target", "--cfg", "feature=")
    settings = [b for a, b in zip(["", *args], args) if a in names or b.startswith(names)]
    digest = hashlib.sha256(repr((str(package.relative_to(ROOT)), settings)).encode()).hexdigest()[:16]
    args = [f"metadata={digest}" if arg.startswith("metadata=") else arg for arg in args]
os.execvp(rustc, [rustc, *args])
