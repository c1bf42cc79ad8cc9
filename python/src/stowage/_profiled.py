"""What `profile` says of a recording: as the command does of its own models' (cli/torch/verb_profile.cpp)."""

from __future__ import annotations

import json
from typing import Any

from ._reports import inspect
from ._sizes import bytes_text, time_text
from ._trace import Trace

Recorded = dict[str, Any]


def profile_text(trace: Trace, file: str) -> str:
    """For people."""
    recorded = json.loads(trace.to_json())
    overhead, layers = recorded["overhead"], recorded["layers"]["n"] - 1
    outermost = sum(parent < 0 for parent in recorded["ops"]["parent"])
    lines = [
        "recorded " + inspect(trace).text().splitlines()[0],
        f"  step time     {time_text(overhead['clean']['step_ns'])}",
        f"  peak          {bytes_text(trace.peaks['requested_bytes'] or 0)} requested",
        f"  offload all   {bytes_text(overhead['offload_all']['peak_requested'])} when every saved tensor leaves at once",
        f"  saved tensors {recorded['saved']['n']:,} in {layers:,} layer{'s' if layers != 1 else ''}",
        f"  ops           {outermost:,}, {recorded['ops']['n']:,} with those that they call",
    ]
    if recorded["gpu"]["n"] > 0:
        gpu = _gpu(recorded)
        lines.append(f"  GPU           {gpu['kernels']:,} kernels, {gpu['copies'] + gpu['memsets']:,} copies and memsets, "
                     f"{time_text(gpu['busy_ns'])} busy, {100 * gpu['attributed_ratio']:.2f} % of it attributed")
        lines.append(f"  timing pass   {time_text(overhead['timing']['step_ns'])} ({100 * gpu['timing_overhead']:+.1f} % over "
                     f"the clean step), {recorded['quality']['dropped_records']:,} dropped records")
    return "\n".join([*lines, f"  fingerprint   {trace.fingerprint[:23]}..", f"wrote {file}", ""])


def profile_json(trace: Trace, file: str) -> str:
    """stowage-profile/1."""
    recorded = json.loads(trace.to_json())

    def cost(name: str) -> dict[str, int]:
        figures = recorded["overhead"][name]
        return {"step_ns": figures["step_ns"], "peak_requested_bytes": figures["peak_requested"]}

    gpu = _gpu(recorded) if recorded["gpu"]["n"] > 0 else None
    quality = ("dropped_records", "zero_timestamp_records", "unattributed_kernels", "unattributed_ns", "unmatched_frees",
               "join_mismatches")
    passes = {"clean": cost("clean"), "timing": cost("timing") if gpu else None, "structure": cost("structure"),
              "offload_all": cost("offload_all")}
    run = recorded["run"]
    step = {name: run.get(name) or None for name in ("batch", "seq", "dtype", "autocast", "optimizer", "grad_scaler")}
    return json.dumps({
        "schema": "stowage-profile/1", "model": run["model"], **step, "device": recorded["env"]["device"], "quick": False,
        "trace": file, "fingerprint": trace.fingerprint, "ops": recorded["ops"]["n"],
        "saved_tensors": recorded["saved"]["n"], "passes": passes,
        "quality": {name: recorded["quality"][name] for name in quality}, "gpu": gpu, "divided": [],
        "everything_offloaded": False, **{f"peak_{name}": size for name, size in trace.peaks.items()},
        "step_ns": trace.step_ns}, indent=2) + "\n"


# Of the GPU's own records.
def _gpu(recorded: Recorded) -> dict[str, Any]:
    gpu, clean, timing = recorded["gpu"], recorded["overhead"]["clean"], recorded["overhead"]["timing"]
    kind = [recorded["legend"]["gpu_kind"][number] for number in gpu["kind"]]
    busy = sum(gpu["duration"])
    outside = sum(time for time, of, op in zip(gpu["duration"], kind, gpu["op"]) if of == "kernel" and op < 0)
    lost = max(outside, recorded["quality"]["unattributed_ns"])
    return {"kernels": kind.count("kernel"), "copies": kind.count("memcpy"), "memsets": kind.count("memset"),
            "busy_ns": busy, "attributed_ratio": 1 - lost / (busy + lost - outside) if busy else 1.0,
            "syncs": recorded["syncs"]["n"], "timing_overhead": timing["step_ns"] / clean["step_ns"] - 1,
            "causality_violations": recorded["clock"]["causality_violations"], "cupti": recorded["env"]["cupti"]}
