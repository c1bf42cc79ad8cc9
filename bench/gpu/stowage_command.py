"""The `stowage` command, called by the measurements beside this file."""

import json
import os
import signal
import subprocess


def stowage(command, *words, limit=None, **environment):
    """(exit code, JSON or None, the last line of its errors) of one call, with these variables besides.

    One that runs past `limit` seconds is ended with all that it started: exit code 124, and what it said last.
    """
    with subprocess.Popen([command, *words, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", start_new_session=True, env={**os.environ, **environment}) as child:
        try:
            output, errors = child.communicate(timeout=limit)
            code, said = child.returncode, ""
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            output, errors = child.communicate()
            code, said = 124, f"{words[0]} ran past {limit} s, said last: "
        except BaseException:
            os.killpg(child.pid, signal.SIGKILL)
            raise
    lines = errors.strip().splitlines()
    said += lines[-1] if lines else ""
    try:
        return code, json.loads(output), said
    except ValueError:
        return code, None, said
