"""One process that takes portalocker's locks as it is told.

Requests and answers are lines of JSON on standard input and output. Every
answer bears the number of its request; lines without one are events. It works
with any portalocker from 3.2 on: what a version does not know is not passed on.
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

writing = threading.Lock()


def say(**line):
    with writing:
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


def crashed(args):
    say(event="crashed", text=f"{args.exc_type.__name__}: {args.exc_value}")


def make(order, shared, kind=portalocker.RedisLock):
    """Returns a lock with what this version knows of the order."""
    kwargs = {"host": HOSTS["host"], "port": HOSTS["port"]}
    wanted = {
        "unavailable_timeout": order.get("unavailable"),
        "check_interval": order.get("check_interval"),
        "thread_sleep_time": order.get("thread_sleep"),
        "self_check_interval": order.get("self_check"),
        "fencing": order.get("fenced"),
        "on_lost": lambda lock: say(event="lost", id=lock.holder_id),
        "interrupt_on_lost": False,
    }
    if shared:
        wanted["flags"] = portalocker.LockFlags.SHARED
    known = {k: v for k, v in wanted.items() if k in KNOWN and v is not None}
    if order.get("lend_connection"):
        known["connection"] = redis.Redis(
            **kwargs, health_check_interval=10, decode_responses=True
        )
    else:
        known["redis_kwargs"] = kwargs
    lock = kind(order["channel"], **known)
    if order.get("id"):
        lock.holder_id = order["id"]
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

    def connect(self, order):
        HOSTS.update(host=order["host"], port=order["port"])
        return {"outcome": "done", "version": portalocker.__version__}

    def open(self, order):
        self.lock = make(order, order.get("shared"))
        return {"outcome": "done", "id": getattr(self.lock, "holder_id", "")}

    def acquire(self, order):
        try:
            self.lock.acquire(
                timeout=order["timeout"], fail_when_locked=order.get("try", False)
            )
        except portalocker.AlreadyLocked as error:
            return {"outcome": "refused", "text": repr(error)}
        return hold(self.lock)

    def release(self, order):
        self.lock.release()
        return {"outcome": "done"}

    def probe(self, order):
        members = [
            {
                "id": h.holder_id,
                "mode": h.mode.value,
                "legacy": h.legacy,
                "elected": bool(h.elected),
            }
            for h in self.lock.probe()
        ]
        return {"outcome": "done", "members": members}

    def state(self, order):
        alive = bool(self.lock.thread and self.lock.thread.is_alive())
        return {"outcome": "done", "lost": getattr(self.lock, "lost", not alive)}

    def contend(self, order):
        return Contender(order).run()


def now():
    """The clock of the journal: the machine's, which all processes share."""
    if sys.platform == "linux":
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return time.time_ns()


class Looking(portalocker.RedisLock):
    """Remembers when it counted the subscribers last, which every grant does."""

    looked = (0, 0)

    def _get_subscriber_count(self, connection):
        begin = now()
        count = super()._get_subscriber_count(connection)
        self.looked = (begin, now())
        return count


class Contender:
    """Takes one lock again and again, and writes a journal of it."""

    def __init__(self, order):
        self.order = order
        self.who = order["who"]
        self.grants = 0
        self.journal = os.open(order["journal"], os.O_WRONLY | os.O_APPEND)
        logging.getLogger("portalocker").addHandler(Reaps(self))

    def note(self, at, *words):
        line = " ".join([str(at), self.who, *words]) + "\n"
        os.write(self.journal, line.encode())

    def run(self):
        writer = make(self.order, False, Looking)
        reader = make(self.order, True, Looking)
        writer.on_lost = reader.on_lost = lambda lock: self.note(now(), "lost")
        end = time.monotonic() + self.order["seconds"]
        while time.monotonic() < end or not self.grants:
            if random.random() < self.order["readers"]:
                self.turn(reader, "s")
            else:
                self.turn(writer, "x")
        return {"outcome": "done"}

    def turn(self, lock, mode):
        try:
            lock.acquire(timeout=self.order["timeout"])
        except portalocker.AlreadyLocked:
            return
        self.grants += 1
        since, at = lock.looked
        self.note(at, "granted", mode, lock.holder_id, str(since))
        time.sleep(random.random() * self.order["hold"])
        self.note(now(), "leaving")
        lock.release()
        time.sleep(random.random() * self.order["pause"])


class Reaps(logging.Handler):
    """Writes down whose connection portalocker is about to end."""

    def __init__(self, contender):
        super().__init__(logging.WARNING)
        self.contender = contender

    def emit(self, record):
        found = re.search(r"Killing .*-lock-([0-9a-f]{32})'", record.getMessage())
        if found:
            self.contender.note(now(), "reaping", found.group(1))


def main():
    threading.excepthook = crashed
    peer = Peer()
    while True:
        try:
            line = sys.stdin.readline()
            if not line:
                break
            order = json.loads(line)
            try:
                answer = getattr(peer, order["do"])(order)
            except Exception as error:
                answer = {"outcome": "error", "text": repr(error)}
            say(call=order["call"], **answer)
        except KeyboardInterrupt:
            say(event="crashed", text="interrupted")
    # Threads of old versions would keep the process alive.
    os._exit(0)


main()
