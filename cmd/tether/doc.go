// Command tether runs programs under a distributed lock on Redis.
//
//	tether run NAME -- CMD ARGS…   take the lock, run the command, release
//	tether probe NAME              who holds it; changes nothing
//	tether serve                   an in-process server, where there is no Redis
//	tether demo                    shows what happens when a holder is killed
//
// Redis is named by --redis, or else by TETHER_REDIS_URL, and is
// redis://localhost:6379 by default. TLS is rediss://host:port, a Unix socket
// unix:///path; user and password are written as redis://user:password@host,
// best in the environment, which other users of the machine can't see.
//
// # The command of tether run
//
// It gets a process group of its own, and standard input, output and error as
// they are. SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH,
// SIGTSTP and SIGCONT that tether run receives are passed on to the group. In
// its environment are
//
//	TETHER_LOCK       the name of the lock
//	TETHER_HOLDER_ID  the id of the holder, as tether probe shows it
//	TETHER_TOKEN      the fencing token; not set without --fenced
//
// When the command ends, the lock is released only after the rest of its
// group is gone too: processes that it left behind get SIGTERM, and SIGKILL
// after the grace (--grace, 10 s by default). What shall outlive the lock, and
// is safe without it, leaves the group (setsid).
//
// When the lock is lost, the whole group gets SIGTERM, and SIGKILL after the
// grace. The same happens when tether run itself is killed with SIGKILL: a
// guard, a process of its own session that waits on a pipe, sees to it. Who
// kills the guard as well has nobody left to do so.
//
// # Who takes the lock, and how
//
// The lock is exclusive. With --shared it is taken as a reader's: any number of
// readers hold it together, and none beside an exclusive holder.
//
// --label is what others read about the holder, in tether probe, in errors and
// while they wait: by default the process and its machine, as in "pid 4711 on
// web-3", and nothing with --label "".
//
// With --fenced the command gets a number that is higher than that of every
// fenced holder before. A store that remembers the highest one it has seen, and
// refuses lower ones, is safe from a command that runs on although its lock is
// lost. Without --fenced TETHER_TOKEN is not set, not even to one that tether
// run itself was given, which would be another lock's. Readers have no order, so
// --shared and --fenced exclude each other. All who take a lock with --fenced
// must name the same Redis database.
//
// With --lease the lock is another one: a key of that name with an expiry (--ttl),
// which is renewed (--renew-interval) for as long as the command runs. It
// excludes leases of tether and locks of redis-py, and no lock that is taken
// without --lease. A crash leaves it taken until it expires; a broken connection
// is no loss as long as a renewal gets through. --shared, --label, --self-check
// and --unavailable-timeout are not for leases.
//
// # How long two commands can overlap
//
// A lease is lost before anybody else can have it, and the overlap is what the
// command takes to end, the grace at most. The rest of this section is about
// other locks.
//
// A lock that is lost is free at once, and a waiting tether run has it within
// 0.15 s, or a little more on a loaded machine; --poll-interval sets that. The
// old command is told within milliseconds, and may then take as long as the
// grace to end. So the overlap is at most the grace, and none to speak of when
// the command ends at SIGTERM. --grace 0 sends SIGKILL at once: the old group
// is gone milliseconds after the loss, typically before the next command has
// been started. A loss that no closed connection tells, a link that is half
// open or a demoted master, is noticed by the health check: up to 15 seconds
// come on top. --self-check finds a server that answers but delivers no
// messages any more.
//
// A tether run that is stopped (SIGSTOP, a suspended machine) answers nobody.
// Whoever wants the lock cuts it off after a second, or what
// --unavailable-timeout says there, and it ends its command when it goes on. A
// command that was not stopped with it runs until then, beside the next one:
// only --fenced, and a store that looks at the token, helps against that.
//
// # Terminals
//
// The command starts in the background of the terminal, so that programs
// further down a pipeline keep it. It gets the foreground when it first reads
// the terminal or changes its settings, and tether run takes it back at the
// end. Ctrl-Z stops both, and fg continues them. The lock stays held meanwhile
// if nobody else wants it; if somebody does, it is lost, and fg ends the command.
//
// # Waiting
//
// Without --wait, tether run waits for ever; --wait 0 tries once. SIGINT,
// SIGTERM, SIGHUP and SIGQUIT end the waiting. Without --wait, the first
// attempt must reach Redis, so that a wrong address shows; later outages, and
// with --wait all, are sat out. The wait does not count for the command, which
// may run as long as it likes.
//
// Who waits is woken by the release, in order of arrival. The looks at the poll
// interval are for locks whose holder has died.
//
// # Exit codes
//
// tether run ends with the code of its command, 128+n if signal n killed it,
// and otherwise with
//
//	64   wrong usage: flags, arguments, the URL
//	69   Redis can't be reached, or can't serve the lock
//	70   this machine can't start the command's processes
//	75   somebody else holds the lock, and the waiting is over
//	76   the lock was lost; the command was ended, whatever its own code
//	126  the command can't be run
//	127  the command was not found
//	128+n  signal n ended the waiting: 130 for SIGINT, 143 for SIGTERM
//
// The command was not started in any of these cases but 76. tether probe ends
// with 0 whenever everybody has answered, whether somebody holds the lock or
// not, tether demo with 1 if something was not as it should be.
//
// The command is for Linux, macOS and the BSDs. Windows has no process groups
// that can be signalled; the library works there.
package main
