"""The driver of the executor of `kind: ray`: jobs of runner as tasks of Ray.

The engine starts `python -m runner.ray` (or this file's text, so that the interpreter needs `ray` alone), and
speaks JSON lines with it: settings, jobs and cancellations on standard input, what became of the jobs on
standard output. The end of its standard input ends the driver and all its tasks.

A job is a task of the user's cluster without retries, because those are the engine's, with their reasons. The
task starts the program as `worker --job -`, and is a streaming generator: its batches arrive while it runs, in
order, and end with it, which needs no actor and no polling. Ray's client (`ray://`) has no such generators;
there the batches arrive together in the end.
"""

import asyncio
import hashlib
import json
import os
import socket
import sys
import threading

# The time in seconds for which a task collects lines before it sends them.
BATCH = 0.25

# The time in seconds for which the resources of the nodes are remembered.
NODES = 10.0


class Unusable(Exception):
    """The node cannot run the program."""


def own_directory(path):
    """Creates a directory that no other user can write to."""
    import stat

    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    found = os.stat(path, follow_symlinks=False)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise Unusable(f"`{path}` is not a directory that belongs to this user alone")
    return path


def program_of(spec):
    """The path of the program on this node, copied there if need be."""
    import fcntl
    import tempfile

    import ray

    if spec["program"]:
        return spec["program"]
    home = spec["node_dir"] or os.path.join(tempfile.gettempdir(), f"runner-{os.getuid()}")
    folder = own_directory(os.path.join(own_directory(home), "programs"))
    path = os.path.join(folder, spec["digest"])
    # Tasks that start at once copy it once.
    with open(os.path.join(folder, ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            if os.stat(path).st_size == spec["size"]:
                os.utime(path)
                return path
        except FileNotFoundError:
            pass
        data = ray.get(spec["copy"][0])
        if hashlib.sha256(data).hexdigest() != spec["digest"]:
            raise Unusable("the copy of the program has other bytes than were sent")
        fresh = f"{path}.{os.getpid()}"
        try:
            with open(fresh, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(fresh, 0o500)
            os.rename(fresh, path)
        finally:
            if os.path.exists(fresh):
                os.unlink(fresh)
    return path


def killed_for_memory():
    """The number of processes that the kernel has killed for the memory of this container."""
    try:
        with open("/sys/fs/cgroup/memory.events") as file:
            return int(dict(line.split() for line in file).get("oom_kill", 0))
    except (OSError, ValueError):
        return 0


def work(spec, job):
    """Runs a job on a node: yields batches, of which the last has the end."""
    import queue
    import signal
    import subprocess
    import tempfile
    import time

    import ray

    place = {"node": ray.get_runtime_context().get_node_id(), "host": socket.gethostname(), "lines": []}
    kills = killed_for_memory()
    try:
        program = program_of(spec)
        errors = tempfile.TemporaryFile()
        # The kernel ends the worker with the thread that started it, which is the main one.
        child = subprocess.Popen(
            [program, "worker", "--job", "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
    except (OSError, Unusable) as err:
        yield {**place, "end": {"kind": "unusable", "what": str(err)}}
        return
    lines = queue.Queue()

    def read():
        for line in child.stdout:
            lines.put(line.decode(errors="replace").rstrip("\n"))
        lines.put(None)

    def kill():
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def say(line):
        try:
            child.stdin.write(line.encode() + b"\n")
            child.stdin.flush()
        except BrokenPipeError:
            pass

    try:
        threading.Thread(target=read, daemon=True).start()
        say(job)
        batch, since, is_over, is_first = place, None, False, True
        while not is_over:
            # Short waits: an interrupt of Ray is noticed between two of them.
            try:
                line = lines.get(timeout=BATCH)
                is_over = line is None
                if not is_over:
                    batch["lines"].append(line)
                    since = since or time.monotonic()
            except queue.Empty:
                pass
            is_due = since and time.monotonic() - since > BATCH
            # The place of a long job is told once.
            if not is_over and (is_due or (is_first and "node" in batch and not since)):
                yield batch
                batch, since, is_first = {"lines": []}, None, False
        status = child.wait()
        errors.seek(max(0, errors.seek(0, os.SEEK_END) - 4096))
        tail = errors.read().decode(errors="replace").splitlines()[-10:]
        is_memory = status != 0 and killed_for_memory() > kills
        yield {**batch, "end": {"kind": "memory" if is_memory else "exit", "status": status, "tail": tail}}
    finally:
        if child.poll() is None:
            # Cancelled: the worker may write a checkpoint first.
            say("stop")
            try:
                child.wait(spec["grace"])
            except subprocess.TimeoutExpired:
                pass
        kill()
        child.wait()


def whole(spec, job):
    """As `work`, for Ray's client: all batches at once."""
    return list(work(spec, job))


def end_of(ray, error):
    """The end of a task that raised an error."""
    names = ray.exceptions
    kinds = [
        (names.TaskCancelledError, "cancelled"),
        (names.OutOfMemoryError, "memory"),
        (names.NodeDiedError, "node"),
        (names.WorkerCrashedError, "worker"),
        (names.ObjectLostError, "lost"),
        (names.TaskUnschedulableError, "refused"),
    ]
    # Ray's client wraps an error in one of the task.
    errors = (error, getattr(error, "cause", None))
    kind = next((kind for name, kind in kinds if any(isinstance(err, name) for err in errors)), "error")
    return {"kind": kind, "what": (str(error).strip().splitlines() or [type(error).__name__])[-1][:500]}


class Driver:
    """The state of the driver: the tasks under way, by the engine's number of the job."""

    def __init__(self, ray, settings, out):
        self.ray = ray
        self.settings = settings
        self.out = out
        self.is_client = settings["address"].startswith("ray://")
        self.tasks = {}
        self.asked = set()
        self.copy = None
        self.nodes = (0.0, [])
        self.warned = set()

    def say(self, **message):
        """Writes a message to the engine."""
        self.out.write(json.dumps(message) + "\n")
        self.out.flush()

    def alive(self):
        """The nodes of the cluster."""
        now = asyncio.get_running_loop().time()
        if now > self.nodes[0]:
            self.nodes = (now + NODES, [node for node in self.ray.nodes() if node["Alive"]])
        return self.nodes[1]

    def program(self):
        """The copy of the program in Ray's object store, its digest and its size."""
        if self.copy is None:
            with open(self.settings["copy"], "rb") as file:
                data = file.read()
            self.copy = ([self.ray.put(data)], hashlib.sha256(data).hexdigest(), len(data))
        return self.copy

    def submit(self, id, job, name, cpus, gpus, memory, excluded, grace):
        """Submits a job."""
        spec = {key: self.settings[key] for key in ("program", "node_dir")}
        spec["grace"] = grace
        if not spec["program"]:
            spec["copy"], spec["digest"], spec["size"] = self.program()
        options = {"num_cpus": cpus, "max_retries": 0, "name": name}
        needs = {"CPU": cpus}
        if gpus:
            options["num_gpus"] = needs["GPU"] = gpus
        if memory:
            options["memory"] = needs["memory"] = memory
        nodes = self.alive()
        avoided = [node["NodeID"] for node in nodes if node["NodeID"].startswith(tuple(excluded))]
        # Where every node is at fault, the job had better run somewhere.
        if 0 < len(avoided) < len(nodes):
            options["label_selector"] = {"ray.io/node-id": f"!in({','.join(avoided)})"}
        fits = any(all(node["Resources"].get(k, 0) >= v for k, v in needs.items()) for node in nodes)
        shown = ", ".join(f"{value:.0f} {key}" for key, value in needs.items())
        if not fits and shown not in self.warned:
            self.warned.add(shown)
            self.say(id=id, warning=f"no node of Ray's cluster has {shown}: the job waits for one that has")
        if not self.is_client:
            options["num_returns"] = "streaming"
        remote = self.ray.remote(whole if self.is_client else work)
        task = self.tasks[id] = remote.options(**options).remote(spec, job)
        ref = task if self.is_client else task._generator_ref
        self.say(id=id, job=ref.task_id().hex())
        asyncio.get_running_loop().create_task(self.follow(id, task))

    async def follow(self, id, task):
        """Passes the batches of a task on."""
        ended = None
        try:
            if self.is_client:
                for batch in await asyncio.wrap_future(task.future()):
                    ended = batch.get("end", ended)
                    self.say(id=id, **batch)
            else:
                async for ref in task:
                    batch = await ref
                    ended = batch.get("end", ended)
                    self.say(id=id, **batch)
            if ended is None:
                self.say(id=id, end={"kind": "cancelled" if id in self.asked else "lost", "what": "no end"})
        except Exception as err:
            if ended is None:
                self.say(id=id, end=end_of(self.ray, err))
        finally:
            self.tasks.pop(id, None)
            self.asked.discard(id)

    def cancel(self, id, force):
        """Cancels a task, if it is under way."""
        task = self.tasks.get(id)
        if task is not None:
            self.asked.add(id)
            self.ray.cancel(task, force=force)

    def take(self, line):
        """Does what a line of the engine asks."""
        message = json.loads(line)
        try:
            if "submit" in message:
                self.submit(**message["submit"])
            else:
                self.cancel(**message["cancel"])
        except Exception as err:
            id = next(iter(message.values()))["id"]
            self.say(id=id, end={"kind": "refused", "what": f"{type(err).__name__}: {err}"})

    async def run(self):
        """Serves the engine until its pipe ends."""
        loop, lines = asyncio.get_running_loop(), asyncio.Queue()

        def read():
            for line in sys.stdin:
                loop.call_soon_threadsafe(lines.put_nowait, line)
            loop.call_soon_threadsafe(lines.put_nowait, None)

        threading.Thread(target=read, daemon=True).start()
        while (line := await lines.get()) is not None:
            self.take(line)
        for id in list(self.tasks):
            self.cancel(id, True)


def connect(settings):
    """Connects to the cluster. Returns Ray, or a message and a hint."""
    # The current directory is no place for modules, such as a `ray.py` of the user.
    sys.path[:] = [path for path in sys.path if path not in ("", os.getcwd())]
    try:
        import ray
        import ray.exceptions
    except ImportError as err:
        return None, (
            f"the interpreter `{sys.executable}` has no Ray: {err}",
            "`pip install ray` there, or name another interpreter by `python:` of the executor",
        )
    address = settings["address"]
    options = {"log_to_driver": False, "logging_level": "error"}
    if address == "local":
        options["include_dashboard"] = False
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        # Ray itself would try for minutes.
        if host and port.isdecimal():
            socket.create_connection((host.strip("[]"), int(port)), 10).close()
        ray.init(address=address, **options)
    except Exception as err:
        reason = (str(err).strip().splitlines() or [type(err).__name__])[0]
        return None, (
            f"no Ray answers at `{address}`: {reason}",
            "`ray start --head` starts one here; `address:` of the executor names another",
        )
    return ray, None


def main():
    """Serves the engine."""
    # What Ray and its libraries print is not ours.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    settings = json.loads(sys.stdin.readline())
    ray, problem = connect(settings)
    if problem:
        out.write(json.dumps({"problem": problem}) + "\n")
        out.flush()
        return 1
    driver = Driver(ray, settings, out)
    nodes = [node for node in ray.nodes() if node["Alive"]]
    driver.say(ready={"version": ray.__version__, "nodes": len(nodes)})
    try:
        asyncio.run(driver.run())
    except BrokenPipeError:
        pass
    ray.shutdown()
    return 0


if __name__ == "__main__":
    code = main()
    # Threads of Ray and of the reader must not keep the process.
    os._exit(code)
