"""The time that N trivial jobs take through an engine: from the first submission until the last has ended.

    python docs/cluster/overhead.py sbatch 64 --repeats 5
    python docs/cluster/overhead.py single 64            # one `sbatch` a job
    python docs/cluster/overhead.py ray 64 --process     # each task starts a process, as our driver does
    python docs/cluster/overhead.py snakemake 1000 --snakemake VENV/bin/snakemake
    python docs/cluster/overhead.py runner 1000 --runner RUNNER --executor hpc

`sbatch` and `snakemake` need `SLURM_CONF`; `ray` starts three nodes on this machine by `ray.cluster_utils.Cluster`, and does not count
their start. A job of `sbatch` and `ray` runs `true`; a stage of `snakemake` and `runner` writes one file. `runner` needs a home
(`RUNNER_HOME`) whose config.yaml has the executor; each repeat has stages that no repeat before had.
"""

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time


def output(*command, **more):
    """The standard output of a program; an error with its messages if it fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
    return done.stdout


def queue_is_empty():
    """Waits until Slurm has no job of this user."""
    while output("squeue", "-h", "-u", os.environ.get("USER", "root"), "-o", "%i").strip():
        time.sleep(0.05)


def sbatch(args, scratch):
    """One array of N tasks."""
    command = ["sbatch", "--parsable", "-o", "/dev/null", "-D", scratch]
    if args.jobs > 1:
        command.append(f"--array=1-{args.jobs}")
    began = time.monotonic()
    output(*command, "--wrap", "true")
    queue_is_empty()
    return time.monotonic() - began


def single(args, scratch):
    """N jobs, each by its own `sbatch`, one call after the other."""
    began = time.monotonic()
    for _ in range(args.jobs):
        output("sbatch", "--parsable", "-o", "/dev/null", "-D", scratch, "--wrap", "true")
    queue_is_empty()
    return time.monotonic() - began


def ray_tasks(args, scratch):
    """N tasks of one CPU; the nodes and their worker processes are started before."""
    import ray

    @ray.remote(num_cpus=1, max_retries=0)
    def task():
        if args.process:
            subprocess.run(["true"], check=True)

    began = time.monotonic()
    ray.get([task.remote() for _ in range(args.jobs)])
    return time.monotonic() - began


def snakemake(args, scratch):
    """N rules without inputs."""
    rule = 'rule t:\n    output: "{i}.txt"\n    shell: "echo {wildcards.i} > {output}"\n'
    wanted = f'rule all:\n    input: [f"{{i}}.txt" for i in range({args.jobs})]\n'
    pathlib.Path(scratch, "Snakefile").write_text(wanted + rule)
    began = time.monotonic()
    output(args.snakemake, "--executor", "slurm", *args.options.split(), cwd=scratch)
    return time.monotonic() - began


def pipeline(args):
    """N stages without inputs."""
    word = time.time_ns()
    points = ", ".join(map(str, range(args.jobs)))
    return (
        f"version: 1\nname: trivial\nstages:\n  t:\n    matrix: {{ i: [{points}] }}\n"
        f"    run: 'echo {word} ${{matrix.i}} > ${{outputs.x}}'\n    outputs: {{ x: x.txt }}\n"
    )


def runner(args, scratch):
    path = pathlib.Path(scratch, "p.yaml")
    path.write_text(pipeline(args))
    began = time.monotonic()
    output(args.runner, "-q", "exec", path, *(["--executor", args.executor] if args.executor else []), *args.options.split())
    return time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=["sbatch", "single", "ray", "snakemake", "runner"])
    parser.add_argument("jobs", type=int)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--process", action="store_true", help="ray: each task starts a process")
    parser.add_argument("--snakemake", default="snakemake")
    parser.add_argument("--runner", default="runner")
    parser.add_argument("--executor", help="runner: an executor of config.yaml; without, on this machine")
    parser.add_argument("--options", default="", help="further arguments of snakemake or runner")
    args = parser.parse_args()
    if args.engine == "ray":
        import ray
        from ray.cluster_utils import Cluster

        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
        for _ in range(2):
            cluster.add_node(num_cpus=2)
        ray.init(address=cluster.address, log_to_driver=False)
        cluster.wait_for_nodes()
    measure = {"sbatch": sbatch, "single": single, "ray": ray_tasks, "snakemake": snakemake, "runner": runner}[args.engine]
    seconds = []
    for i in range(args.repeats):
        scratch = tempfile.mkdtemp()
        seconds.append(measure(args, scratch))
        shutil.rmtree(scratch, ignore_errors=True)
        print(f"{args.engine} {args.jobs}: {seconds[-1]:.3f} s", file=sys.stderr, flush=True)
    median = statistics.median(seconds)
    print(f"{args.engine} {args.jobs}: median {median:.3f} s of {args.repeats}, {1000 * median / args.jobs:.1f} ms a job")


if __name__ == "__main__":
    main()
