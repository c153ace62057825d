package actor

import (
	"time"

	"github.com/tetherlock/tether/protocol"
)

const (
	backoffMin = 25 * time.Millisecond
	backoffMax = time.Second
	// A contender that lost to another tries again after a few round trips.
	quickTrips = 4
	quickMin   = time.Millisecond
	quickMax   = 50 * time.Millisecond
)

// withdraw takes every claim out of the own record.
func (m *Machine) withdraw() {
	m.mode, m.chief = protocol.Pending, false
	m.probe = probe{}
}

// attempt begins one attempt to get the lock.
func (m *Machine) attempt() { m.attemptWith(false) }

// attemptWith begins an attempt, on a fresh socket if that is wanted.
func (m *Machine) attemptWith(fresh bool) {
	m.notify(Attempting{})
	m.serve.trips = 0
	if m.link.up && !m.link.clean() {
		m.drop()
	}
	if m.link.up {
		m.link.warm, m.link.heard = true, false
		m.join()
		return
	}
	m.phase = dialing
	m.link.dial++
	m.do(Dial{Dial: m.link.dial, Fresh: fresh})
}

// join subscribes, counts and asks for the role in one write. The HELLO stands
// behind the count: before it, a pause could hold the count until the node is
// demoted, and the old role would vouch for it.
func (m *Machine) join() {
	m.phase = joining
	m.withdraw()
	m.probe = probe{sent: m.now, n: -1}
	m.serve.trips++
	enter := []Command{{Op: Subscribe, Channel: m.cfg.Channel}, {Op: Count}}
	if m.link.warm {
		m.send(append(enter, Command{Op: Hello, Naming: LockName})...)
		return
	}
	login := []Command{{Op: Login, Naming: LockName}}
	m.send(append(append(login, enter...), Command{Op: Hello})...)
}

// joined looks whether the first round trip is complete.
func (m *Machine) joined() {
	if !m.link.on(m.cfg.Channel) || m.probe.n < 0 || !m.probe.greeted {
		return
	}
	m.link.trip = m.now.Sub(m.probe.sent)
	m.serve.failed, m.serve.trouble = 0, nil
	switch m.probe.n {
	case 0:
		m.fail(uncounted(Count))
	case 1:
		m.grant()
	default:
		m.ask(electing)
	}
}

// fail ends an attempt with an error. Its socket is closed.
func (m *Machine) fail(err error) {
	doubtful := m.link.doubtful()
	m.drop()
	if doubtful {
		m.attempt() // a try would fail although the server is well
		return
	}
	if unauthorized(err) && m.cfg.Renewable && !m.serve.renewed {
		m.serve.renewed = true
		m.attempt()
		return
	}
	m.serve.trouble = err
	m.serve.failed++
	if terminal(err) || m.calls[0].Try {
		m.notify(AttemptFailed{Err: err})
		m.refuse(Refusal{Why: Broken, Cause: err})
		return
	}
	pause := m.jittered(min(backoffMin<<min(m.serve.failed-1, 10), backoffMax))
	m.notify(AttemptFailed{Err: err, Retry: pause})
	m.sleep(pause, false)
}

// quick is the pause of a contender whom no holder blocks.
func (m *Machine) quick() time.Duration {
	return m.jittered(min(max(quickTrips*m.link.trip, quickMin), quickMax))
}

// sleep waits off the channel. With look, waking up begins with a count.
func (m *Machine) sleep(pause time.Duration, look bool) {
	m.phase = sleeping
	m.serve.wake = m.now.Add(pause)
	m.serve.look = look
	m.serve.asked = time.Time{}
}

// awake ends a sleep: with a look at the channel, or with an attempt.
func (m *Machine) awake() {
	m.serve.looks++
	if !m.serve.look || !m.link.up || m.serve.looks%looks == 0 {
		m.attempt()
		return
	}
	m.serve.asked = m.now
	m.send(Command{Op: Count})
}

// looked is the answer to a sleeper's count.
func (m *Machine) looked(n int) {
	m.serve.asked = time.Time{}
	if n == 0 {
		m.attempt()
		return
	}
	m.serve.wake = m.now.Add(m.jittered(poll))
}

func (m *Machine) grant() {
	call := m.answer()
	m.phase, m.state = holding, Held
	m.mode = protocol.Exclusive
	m.hold = hold{call: call, id: m.link.id, since: m.now, check: m.now.Add(m.cfg.Health)}
	waited := m.now.Sub(m.serve.began)
	if list := m.unsubscribes(m.cfg.Channel); len(list) > 0 {
		m.send(list...)
	}
	m.notify(Granted{ID: m.link.id, RoundTrips: m.serve.trips, Waited: waited})
	m.do(Grant{Call: call, ID: m.link.id, RoundTrips: m.serve.trips, Waited: waited})
	m.serve, m.probe = service{}, probe{}
}
