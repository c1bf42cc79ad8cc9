"""The `stowage` command, called by the measurements beside this file."""

import json
import os
import subprocess


def stowage(command, *words, **environment):
    """(exit code, JSON or None, the last line of its errors) of one call, with these variables besides."""
    done = subprocess.run([command, *words, "--json"], capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})
    lines = done.stderr.strip().splitlines()
    try:
        return done.returncode, json.loads(done.stdout), lines[-1] if lines else ""
    except ValueError:
        return done.returncode, None, lines[-1] if lines else ""
