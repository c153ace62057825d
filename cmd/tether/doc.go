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
// after the grace (--grace, 10 s by default). A process that should outlive the
// lock, and is safe without it, must leave the group (setsid).
//
// When the lock is lost, the whole group gets SIGTERM, and SIGKILL after the
// grace. The same happens when tether run itself is killed with SIGKILL: a
// watchdog, a process in a session of its own, waits on a pipe for that. If the
// watchdog is killed as well, the command is not ended.
//
// # Who takes the lock, and how
//
// The lock is exclusive. With --shared it is taken as a reader's: any number of
// readers hold it together, and none beside an exclusive holder.
//
// --label is what others see about the holder, in tether probe, in errors and
// while they wait: by default the process and its machine, as in "pid 4711 on
// web-3", and nothing with --label "".
//
// With --fenced the command gets a number that is higher than that of every
// fenced holder before. A store that remembers the highest one it has seen, and
// refuses lower ones, is safe from a command that still runs although its lock is
// lost. Without --fenced TETHER_TOKEN is removed from the command's environment:
// a value from the environment of tether run belongs to another lock. Readers
// have no order, so --shared and --fenced exclude each other. All who take a lock
// with --fenced must use the same Redis database.
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
// A lease is lost before anybody else can have it. The overlap is the time that
// the command takes to end, at most the grace. The rest of this section is about
// other locks.
//
// A lock that is lost is free at once, and a waiting tether run has it within
// 0.15 s, or a little more on a loaded machine; --poll-interval sets that. The
// old command gets SIGTERM within milliseconds, and may then take as long as the
// grace to end. So the overlap is at most the grace, and about nothing when the
// command ends at SIGTERM. --grace 0 sends SIGKILL at once: the old group is gone
// milliseconds after the loss, typically before the next command has been
// started. A loss without a closed connection (a half-open link, a demoted
// master) is found by the health check, up to 15 seconds later. --self-check
// finds a server that answers but no longer delivers messages.
//
// A tether run that is stopped (SIGSTOP, a suspended machine) answers no pings.
// A contender reaps it after the contender's --unavailable-timeout, one second by
// default. The stopped tether run ends its command when it continues. A command
// that was not stopped with it runs until then, beside the next one: against that
// only --fenced helps, with a store that checks the token.
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
// attempt must reach Redis, so that a wrong address shows; the wait goes on
// through later outages, and with --wait through all outages. --wait does not
// limit how long the command runs.
//
// A release wakes the waiters in order of arrival. The polls at the poll interval
// are for locks whose holder has died.
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
