"""A worker that uses portalocker's RedisLock.

Requests and responses are lines of JSON on standard input and output, the same
as those of the other workers.
"""

import json
import logging
import os
import sys
import threading
import time

import portalocker
import redis

SETUP = json.loads(os.environ["TETHER_BENCH_SETUP"])
HOST, PORT = SETUP["endpoints"]["Redis"].rsplit(":", 1)
BEST = SETUP["peer"].endswith(":best")
FOREVER = 3600

logging.disable(logging.CRITICAL)


def now():
    """The clock that all processes of the machine share, in nanoseconds."""
    if sys.platform == "linux":
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return time.time_ns()


class Client:
    """The options and the connection of one user of locks."""

    def __init__(self):
        self.options = {"interrupt_on_lost": False}
        self.connection = None
        if BEST:
            self.connection = redis.Redis(
                host=HOST,
                port=int(PORT),
                health_check_interval=10,
                decode_responses=True,
            )
            self.options.update(
                connection=self.connection,
                check_interval=0.01,
                thread_sleep_time=0.001,
            )
        else:
            self.options["redis_kwargs"] = {"host": HOST, "port": int(PORT)}

    def acquire(self, name, timeout=FOREVER):
        lock = portalocker.RedisLock(name, **self.options)
        lock.acquire(timeout=timeout)
        return lock

    def close(self):
        if self.connection:
            self.connection.close()


client = Client()
held = {}


def lock_name(request, i):
    names = request.get("names", 0)
    return f"{request['name']}-{i % names if names else f'{now()}-{i}'}"


def alone(request):
    took = []
    for i in range(request["ops"]):
        name = lock_name(request, i)
        begin = now()
        client.acquire(name).release()
        took.append(now() - begin)
    return {"took": took}


def cold(request):
    took = []
    for i in range(request["ops"]):
        name = lock_name(request, i)
        begin = now()
        fresh = Client()
        lock = fresh.acquire(name)
        took.append(now() - begin)
        lock.release()
        fresh.close()
    return {"took": took}


def acquire(request):
    held[request["name"]] = client.acquire(request["name"])
    return {"at": now()}


def release(request):
    began = now()
    held.pop(request["name"]).release()
    return {"began": began, "at": now()}


def run_users(users, work):
    threads = [threading.Thread(target=work, args=(i,)) for i in range(users)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def crowd(request):
    counts = [0] * request["users"]
    end = request["end"]

    def contend(user):
        while now() < end:
            remaining = max(0.001, (end - now()) / 1e9)
            try:
                lock = client.acquire(request["name"], timeout=remaining)
            except portalocker.AlreadyLocked:
                continue
            lock.release()
            counts[user] += request["begin"] <= now() < end

    run_users(request["users"], contend)
    return {"counts": counts}


def wait_for_one(request):
    grants = []

    def wait(_):
        while not grants:
            try:
                lock = client.acquire(request["name"], timeout=1)
            except portalocker.AlreadyLocked:
                continue
            grants.append(now())
            lock.release()

    run_users(request["users"], wait)
    return {"at": min(grants)}


TASKS = {
    "alone": alone,
    "cold": cold,
    "acquire": acquire,
    "release": release,
    "crowd": crowd,
    "await": wait_for_one,
}


def respond(line):
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def main():
    respond({"call": 0})
    for line in sys.stdin:
        request = json.loads(line)
        try:
            response = TASKS[request["task"]](request)
        except Exception as error:
            response = {"error": repr(error)}
        respond({"call": request["call"], **response})
    # The threads of a lock that is still held would keep the process from ending.
    os._exit(0)


main()
