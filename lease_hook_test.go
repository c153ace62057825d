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

// leaseKey is the name of the tests' lease, which is also its key.
const leaseKey = "l"

// scriptHook is a hook of go-redis. It counts the runs of a lease's scripts by name,
// and lets a test delay or replace them.
type scriptHook struct {
	mu     sync.Mutex
	counts map[string]int
	// override is called in place of a run. It gets the run as a function.
	override func(script string, run func() error) error
}

// addScriptHook adds a hook to a client.
func addScriptHook(rdb *redis.Client) *scriptHook {
	s := &scriptHook{counts: map[string]int{}}
	rdb.AddHook(s)
	return s
}

// intercept calls fn in place of every run of a script, until the next intercept.
func (s *scriptHook) intercept(script string, fn func(run func() error) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.override = func(name string, run func() error) error {
		if name == script {
			return fn(run)
		}
		return run()
	}
}

func (s *scriptHook) runs(script string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[script]
}

func (s *scriptHook) countRun(script string) func(script string, run func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[script]++
	return s.override
}

func (s *scriptHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *scriptHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (s *scriptHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		script := scriptOf(cmd)
		if script == "" {
			return next(ctx, cmd)
		}
		run := func() error { return next(ctx, cmd) }
		if override := s.countRun(script); override != nil {
			run = func() error { return override(script, func() error { return next(ctx, cmd) }) }
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

// scriptOf returns the name of the script that a command runs, or "". Only EVALSHA
// counts: EVAL follows an EVALSHA that found no script, and is the same run.
func scriptOf(cmd redis.Cmder) string {
	if hash, ok := cmd.Args()[1%len(cmd.Args())].(string); ok && cmd.Name() == "evalsha" {
		return leaseScripts[hash]
	}
	return ""
}

// delayReply runs a script at once and delays its reply.
func delayReply(d time.Duration) func(run func() error) error {
	return func(run func() error) error {
		err := run()
		<-time.After(d)
		return err
	}
}

// failFirst makes the first n runs fail with a network error. The script is not
// sent.
func failFirst(n int) func(run func() error) error {
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

// keyIs returns a condition: the lease's key has the value want, or does not exist
// if want is "".
func (s server) keyIs(t *testing.T, want string) func() bool {
	return func() bool { return s.admin.Get(context.Background(), leaseKey).Val() == want }
}
