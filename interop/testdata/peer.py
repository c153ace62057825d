"""A process with a lock of portalocker, for the tests in Go.

Requests and responses are lines of JSON on standard input and output. A response
has the number of its request. A line without a number is an event. The program
works with portalocker 3.2 and newer: arguments that a version does not have are
left out.
"""

import inspect
import json
import logging
import os
import random
import re
import sys
import threading
import time

import portalocker
import redis

KNOWN = inspect.signature(portalocker.RedisLock.__init__).parameters
HOSTS = {}

output_lock = threading.Lock()


def write(**line):
    with output_lock:
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


def crashed(args):
    write(event="crashed", text=f"{args.exc_type.__name__}: {args.exc_value}")


def make_lock(request, shared, kind=portalocker.RedisLock):
    """Returns a lock, with those arguments of the request that this version has."""
    kwargs = {"host": HOSTS["host"], "port": HOSTS["port"]}
    wanted = {
        "unavailable_timeout": request.get("unavailable"),
        "check_interval": request.get("check_interval"),
        "thread_sleep_time": request.get("thread_sleep"),
        "self_check_interval": request.get("self_check"),
        "fencing": request.get("fenced"),
        "on_lost": lambda lock: write(event="lost", id=lock.holder_id),
        "interrupt_on_lost": False,
    }
    if shared:
        wanted["flags"] = portalocker.LockFlags.SHARED
    known = {k: v for k, v in wanted.items() if k in KNOWN and v is not None}
    if request.get("lend_connection"):
        known["connection"] = redis.Redis(
            **kwargs, health_check_interval=10, decode_responses=True
        )
    else:
        known["redis_kwargs"] = kwargs
    lock = kind(request["channel"], **known)
    if request.get("id"):
        lock.holder_id = request["id"]
    return lock


def hold(lock):
    return {
        "outcome": "granted",
        "id": getattr(lock, "holder_id", ""),
        "token": getattr(lock, "fence_token", None) or 0,
    }


class Peer:
    def __init__(self):
        self.lock = None

    def connect(self, request):
        HOSTS.update(host=request["host"], port=request["port"])
        return {"outcome": "done", "version": portalocker.__version__}

    def open(self, request):
        self.lock = make_lock(request, request.get("shared"))
        return {"outcome": "done", "id": getattr(self.lock, "holder_id", "")}

    def acquire(self, request):
        try:
            self.lock.acquire(
                timeout=request["timeout"], fail_when_locked=request.get("try", False)
            )
        except portalocker.AlreadyLocked as error:
            return {"outcome": "refused", "text": repr(error)}
        return hold(self.lock)

    def release(self, request):
        self.lock.release()
        return {"outcome": "done"}

    def probe(self, request):
        participants = [
            {
                "id": h.holder_id,
                "mode": h.mode.value,
                "legacy": h.legacy,
                "elected": bool(h.elected),
            }
            for h in self.lock.probe()
        ]
        return {"outcome": "done", "participants": participants}

    def state(self, request):
        alive = bool(self.lock.thread and self.lock.thread.is_alive())
        return {"outcome": "done", "lost": getattr(self.lock, "lost", not alive)}

    def contend(self, request):
        return Contender(request).run()


def now():
    """The clock of the history, which all processes of the machine share."""
    if sys.platform == "linux":
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return time.time_ns()


class CountingLock(portalocker.RedisLock):
    """Remembers when it last counted the subscribers. Every grant counts them."""

    counted = (0, 0)

    def _get_subscriber_count(self, connection):
        begin = now()
        count = super()._get_subscriber_count(connection)
        self.counted = (begin, now())
        return count


class Contender:
    """Acquires one lock again and again, and appends entries to the history."""

    def __init__(self, request):
        self.request = request
        self.who = request["who"]
        self.grants = 0
        self.history = os.open(request["history"], os.O_WRONLY | os.O_APPEND)
        logging.getLogger("portalocker").addHandler(ReapRecorder(self))

    def add_entry(self, at, *words):
        line = " ".join([str(at), self.who, *words]) + "\n"
        os.write(self.history, line.encode())

    def run(self):
        writer = make_lock(self.request, False, CountingLock)
        reader = make_lock(self.request, True, CountingLock)
        writer.on_lost = reader.on_lost = lambda lock: self.add_entry(now(), "lost")
        end = time.monotonic() + self.request["seconds"]
        while time.monotonic() < end or not self.grants:
            if random.random() < self.request["readers"]:
                self.turn(reader, "s")
            else:
                self.turn(writer, "x")
        return {"outcome": "done"}

    def turn(self, lock, mode):
        try:
            lock.acquire(timeout=self.request["timeout"])
        except portalocker.AlreadyLocked:
            return
        self.grants += 1
        since, at = lock.counted
        self.add_entry(at, "granted", mode, lock.holder_id, str(since))
        time.sleep(random.random() * self.request["hold"])
        self.add_entry(now(), "leaving")
        lock.release()
        time.sleep(random.random() * self.request["pause"])


class ReapRecorder(logging.Handler):
    """Adds an entry when portalocker is about to end a connection."""

    def __init__(self, contender):
        super().__init__(logging.WARNING)
        self.contender = contender

    def emit(self, record):
        found = re.search(r"Killing .*-lock-([0-9a-f]{32})'", record.getMessage())
        if found:
            self.contender.add_entry(now(), "reaping", found.group(1))


def main():
    threading.excepthook = crashed
    peer = Peer()
    while True:
        try:
            line = sys.stdin.readline()
            if not line:
                break
            request = json.loads(line)
            try:
                response = getattr(peer, request["do"])(request)
            except Exception as error:
                response = {"outcome": "error", "text": repr(error)}
            write(call=request["call"], **response)
        except KeyboardInterrupt:
            write(event="crashed", text="interrupted")
    # Old versions have threads that are not daemons and would go on.
    os._exit(0)


main()
