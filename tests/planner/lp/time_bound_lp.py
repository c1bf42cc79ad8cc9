"""The time bound against linear programmes that HiGHS solves: time_bound_lp.py PROGRAM.

PROGRAM (lp_cases.cpp) prints the cases. A lane alone: earliest_done() is the programme's optimum, rounded
down. A whole step: at each moment above the budget any fraction of a storage is away, was copied out behind its
pack and ahead of the moment, and comes back behind it and ahead of its use, one lane a way; the step ends no
sooner than the highest of these optima, and shortest_step() is not above it.

Exits 77 (skipped) where highspy is not installed: scripts/setup.sh torch installs it.
"""

import json
import subprocess
import sys

try:
    import highspy
except ImportError:
    print("SKIPPED: HiGHS is not installed (scripts/setup.sh torch, or pip install highspy)")
    sys.exit(77)

# earliest_done() rounds down, each job that is cut into pieces once more; HiGHS is exact to about 1e-7.
PIECE = 1.0


def solver():
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("primal_feasibility_tolerance", 1e-9)
    highs.setOptionValue("dual_feasibility_tolerance", 1e-9)
    return highs


def lane(highs, jobs, horizon_at_least):
    """A lane that processes fractions of jobs between their releases; returns (its length, their fractions)."""
    starts = sorted({0, *(job["release"] for job in jobs)})
    length = highs.addVariable(lb=max(horizon_at_least, starts[-1]))
    done = [[] for _ in jobs]
    for number, start in enumerate(starts):
        here = []
        for which, job in enumerate(jobs):
            if job["release"] <= start and job["size"] > 0:
                here.append(highs.addVariable(lb=0))
                done[which].append(here[-1])
        if not here:
            continue
        if number + 1 < len(starts):
            highs.addConstr(sum(here) <= starts[number + 1] - start)
        else:
            highs.addConstr(sum(here) <= length - start)
    fractions = []
    for job, parts in zip(jobs, done):
        fractions.append(highs.addVariable(lb=0, ub=1))
        if job["size"] > 0:
            highs.addConstr(sum(parts) >= job["size"] * fractions[-1])
    return length, fractions


def optimum(highs, objective):
    highs.minimize(objective)
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return highs.getInfo().objective_function_value


def machine(case):
    """The least time of a lane alone: jobs that are released later than it ends do not count."""
    best = None
    for end in sorted({0, *(job["release"] for job in case["jobs"])}):
        jobs = [job for job in case["jobs"] if job["release"] <= end]
        if sum(job["value"] for job in jobs) < case["wanted"]:
            continue
        highs = solver()
        length, fractions = lane(highs, jobs, 0)
        highs.addConstr(sum(f * job["value"] for f, job in zip(fractions, jobs)) >= case["wanted"])
        found = optimum(highs, length)
        if found is not None and (best is None or found < best):
            best = found
    return best


def moment(case):
    highs = solver()
    jobs = case["jobs"]
    before, out = lane(highs, jobs, case["before"])
    after, back = lane(highs, [job | {"release": job["behind"]} for job in jobs], case["after"])
    away = [highs.addVariable(lb=0, ub=1) for _ in jobs]
    for each, gone, returned in zip(away, out, back):
        highs.addConstr(each <= gone)
        highs.addConstr(each <= returned)
    if not jobs:
        return None
    highs.addConstr(sum(x * job["value"] for x, job in zip(away, jobs)) >= case["wanted"])
    return optimum(highs, before + after)


def main():
    cases = json.loads(subprocess.run(sys.argv[1:], check=True, capture_output=True, text=True).stdout)
    failures = []
    for case in cases["machines"]:
        right, said = machine(case), case["earliest_done"]
        rounding = PIECE * (1 + len(case["jobs"]))
        if right is None or not right - rounding <= said <= right + 1e-4:
            failures.append(f"machine of seed {case['seed']}: earliest_done() {said}, the programme {right}")
    bounded = equal = 0
    for case in cases["steps"]:
        optima = [moment(each) for each in case["moments"]]
        if any(found is None for found in optima):
            failures.append(f"step of seed {case['seed']}: no plan keeps {case['budget']}")
            continue
        right, said = max([case["resident"], *optima]), case["shortest_step"]
        if said > right + 1e-4:
            failures.append(f"step of seed {case['seed']}: shortest_step() {said}, the programme {right}")
        if right > case["resident"] + 1:
            bounded += 1
            equal += said >= right - 2 * (PIECE + len(case["moments"]))
    for failure in failures:
        print(failure)
    print(f"{len(cases['machines'])} machines, {len(cases['steps'])} steps ({bounded} longer than the resident "
          f"one, the bound as high as the programme in {equal}), {len(failures)} failures")
    # A bound that is always far off proves little.
    return 1 if failures or bounded < 50 or equal < bounded // 2 else 0


if __name__ == "__main__":
    sys.exit(main())
