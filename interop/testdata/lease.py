"""A process with a Lock of redis-py, for the tests in Go.

A command is a line of words on standard input. Its answer is a line on standard
output: a value, or the name of an error.
"""

import sys
import threading

import redis

server = redis.Redis(host=sys.argv[1], port=int(sys.argv[2]))
lock = server.lock(sys.argv[3], timeout=float(sys.argv[4]), sleep=0.02, thread_local=False)
stop = threading.Event()
renewing = None


def renew(interval):
    """Renews the lock until it is released."""
    while not stop.wait(interval):
        lock.reacquire()


def run(command, *words):
    global renewing
    if command == 'acquire':
        return lock.acquire(blocking=float(words[0]) > 0, blocking_timeout=float(words[0]) or None)
    if command == 'renew':
        renewing = threading.Thread(target=renew, args=(float(words[0]),), daemon=True)
        renewing.start()
        return True
    if command == 'release':
        stop.set()
        if renewing:
            renewing.join()
        lock.release()
        return True
    if command == 'set_token':  # of another holder
        lock.local.token = words[0].encode()
        return True
    if command == 'reacquire':
        return lock.reacquire()
    if command == 'extend':
        return lock.extend(float(words[0]))
    if command == 'owned':
        return lock.owned()
    if command == 'locked':
        return lock.locked()
    raise ValueError(command)


for line in sys.stdin:
    try:
        print(run(*line.split()), flush=True)
    except Exception as error:
        print(type(error).__name__, flush=True)
