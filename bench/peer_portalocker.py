"""A worker that uses portalocker's RedisLock as it is told.

Orders and answers are lines of JSON on standard input and output, the same as
those of the other workers.
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
HOST, PORT = SETUP["place"]["Redis"].rsplit(":", 1)
BEST = SETUP["peer"].endswith(":best")
FOREVER = 3600

logging.disable(logging.CRITICAL)


def now():
    """The clock that all processes of the machine share."""
    if sys.platform == "linux":
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return time.time_ns()


class Client:
    """What one user of locks has."""

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


def name_of(order, i):
    names = order.get("names", 0)
    return f"{order['name']}-{i % names if names else f'{now()}-{i}'}"


def alone(order):
    took = []
    for i in range(order["ops"]):
        name = name_of(order, i)
        begin = now()
        client.acquire(name).release()
        took.append(now() - begin)
    return {"took": took}


def cold(order):
    took = []
    for i in range(order["ops"]):
        name = name_of(order, i)
        begin = now()
        fresh = Client()
        lock = fresh.acquire(name)
        took.append(now() - begin)
        lock.release()
        fresh.close()
    return {"took": took}


def acquire(order):
    held[order["name"]] = client.acquire(order["name"])
    return {"at": now()}


def release(order):
    began = now()
    held.pop(order["name"]).release()
    return {"began": began, "at": now()}


def together(users, work):
    threads = [threading.Thread(target=work, args=(i,)) for i in range(users)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def crowd(order):
    counts = [0] * order["users"]
    end = order["end"]

    def contend(user):
        while now() < end:
            left = max(0.001, (end - now()) / 1e9)
            try:
                lock = client.acquire(order["name"], timeout=left)
            except portalocker.AlreadyLocked:
                continue
            lock.release()
            counts[user] += order["begin"] <= now() < end

    together(order["users"], contend)
    return {"counts": counts}


def wait_for_one(order):
    grants = []

    def wait(_):
        while not grants:
            try:
                lock = client.acquire(order["name"], timeout=1)
            except portalocker.AlreadyLocked:
                continue
            grants.append(now())
            lock.release()

    together(order["users"], wait)
    return {"at": min(grants)}


ORDERS = {
    "alone": alone,
    "cold": cold,
    "acquire": acquire,
    "release": release,
    "crowd": crowd,
    "await": wait_for_one,
}


def say(line):
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def main():
    say({"call": 0})
    for line in sys.stdin:
        order = json.loads(line)
        try:
            answer = ORDERS[order["do"]](order)
        except Exception as error:
            answer = {"error": repr(error)}
        say({"call": order["call"], **answer})
    # The threads of a lock that is still held would keep the process alive.
    os._exit(0)


main()
