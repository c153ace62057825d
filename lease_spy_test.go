package tether_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tetherlock/tether/internal/leasekey"
)

// leaseKey says what the tests look for where a lease's name is "l".
const leaseKey = "l"

// spy stands between a lease and the server. It counts the scripts by name, and
// a test may do something in the place of one.
type spy struct {
	mu    sync.Mutex
	count map[string]int
	// instead is called with what runs the script.
	instead func(script string, run func() error) error
}

// spied is the client for a lease, with its spy.
func spied(rdb *redis.Client) *spy {
	s := &spy{count: map[string]int{}}
	rdb.AddHook(s)
	return s
}

// on lets fn decide about every run of a script.
func (s *spy) on(script string, fn func(run func() error) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.instead = func(name string, run func() error) error {
		if name == script {
			return fn(run)
		}
		return run()
	}
}

func (s *spy) runs(script string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count[script]
}

func (s *spy) note(script string) func(script string, run func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count[script]++
	return s.instead
}

func (s *spy) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *spy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (s *spy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		script := scriptOf(cmd)
		if script == "" {
			return next(ctx, cmd)
		}
		run := func() error { return next(ctx, cmd) }
		if instead := s.note(script); instead != nil {
			run = func() error { return instead(script, func() error { return next(ctx, cmd) }) }
		}
		err := run()
		if err != nil {
			cmd.SetErr(err)
		}
		return err
	}
}

var leaseScripts = map[string]string{
	leasekey.Take.Hash(): "take", leasekey.Renew.Hash(): "renew", leasekey.Check.Hash(): "check", leasekey.Drop.Hash(): "drop",
}

// scriptOf names the script that a command runs, "" for none. The text is sent
// once, when the server does not know it yet, and is not counted again.
func scriptOf(cmd redis.Cmder) string {
	if hash, ok := cmd.Args()[1%len(cmd.Args())].(string); ok && cmd.Name() == "evalsha" {
		return leaseScripts[hash]
	}
	return ""
}

// later runs a script now and keeps its reply for a while.
func later(d time.Duration) func(run func() error) error {
	return func(run func() error) error {
		err := run()
		<-time.After(d)
		return err
	}
}

// breaks lets the next n runs of a script end with an error of the network,
// without the script.
func breaks(n int) func(run func() error) error {
	left := make(chan struct{}, n)
	for range n {
		left <- struct{}{}
	}
	return func(run func() error) error {
		select {
		case <-left:
			return net.ErrClosed
		default:
			return run()
		}
	}
}

// keyIs returns a condition: the key of a lease has a value, "" for none.
func (s server) keyIs(t *testing.T, want string) func() bool {
	return func() bool { return s.admin.Get(context.Background(), leaseKey).Val() == want }
}
