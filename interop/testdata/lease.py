"""One process that takes redis-py's Lock, by orders on standard input.

Each order is a line of words; each answer is a line: a value, or the name of an
error.
"""

import sys
import threading

import redis

server = redis.Redis(host=sys.argv[1], port=int(sys.argv[2]))
lock = server.lock(sys.argv[3], timeout=float(sys.argv[4]), sleep=0.02, thread_local=False)
stop = threading.Event()
renewing = None


def renew(interval):
    """Renews like a program that must not lose the lock in the middle."""
    while not stop.wait(interval):
        lock.reacquire()


def obey(order, *words):
    global renewing
    if order == 'acquire':
        return lock.acquire(blocking=float(words[0]) > 0, blocking_timeout=float(words[0]) or None)
    if order == 'renew':
        renewing = threading.Thread(target=renew, args=(float(words[0]),), daemon=True)
        renewing.start()
        return True
    if order == 'release':
        stop.set()
        if renewing:
            renewing.join()
        lock.release()
        return True
    if order == 'pretend':  # somebody else's token is no secret
        lock.local.token = words[0].encode()
        return True
    if order == 'reacquire':
        return lock.reacquire()
    if order == 'extend':
        return lock.extend(float(words[0]))
    if order == 'owned':
        return lock.owned()
    if order == 'locked':
        return lock.locked()
    raise ValueError(order)


for line in sys.stdin:
    try:
        print(obey(*line.split()), flush=True)
    except Exception as error:
        print(type(error).__name__, flush=True)
