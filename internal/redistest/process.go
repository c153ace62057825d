package redistest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// process is a child that is reaped by asking, not by a goroutine that waits
// for it: a server that lives as long as its test package would otherwise be
// reported as a leak by every test that looks for leaked goroutines.
type process struct {
	pid int // 0 when there is none, or when it is gone
}

// spawn starts argv in dir, with its output appended to the log there.
func spawn(dir string, argv []string) (*process, error) {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(dir, logName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	in, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer in.Close()

	child, err := os.StartProcess(path, argv, &os.ProcAttr{
		Dir: dir,
		// A server whose locale is not installed refuses to start.
		Env:   append(os.Environ(), "LC_ALL=C"),
		Files: []*os.File{in, log, log},
		Sys:   childAttr(),
	})
	if err != nil {
		return nil, err
	}
	p := &process{pid: child.Pid}
	return p, child.Release()
}

// exited reaps the process if it has ended. The pid of a process that was not
// reaped cannot belong to another one, so signalling it is safe until then.
func (p *process) exited() bool {
	return p.reap(syscall.WNOHANG)
}

func (p *process) reap(options int) bool {
	for p.pid != 0 {
		pid, err := syscall.Wait4(p.pid, nil, options, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if pid == 0 && err == nil {
			return false
		}
		p.pid = 0
	}
	return true
}

func (p *process) signal(sig syscall.Signal) error {
	if p.exited() {
		return os.ErrProcessDone
	}
	if err := syscall.Kill(p.pid, sig); err != nil {
		return fmt.Errorf("signal %v to process %d: %w", sig, p.pid, err)
	}
	if sig == syscall.SIGKILL {
		p.reap(0)
	}
	return nil
}

// stop ends the process at once. SIGTERM would wait for replicas that lag,
// and there is nothing to save.
func (p *process) stop() {
	if p.signal(syscall.SIGCONT) == nil {
		_ = p.signal(syscall.SIGKILL)
	}
}

// await polls until the condition holds or has an error.
func await(limit time.Duration, what string, condition func() (bool, error)) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	end := time.After(limit)
	for {
		if done, err := condition(); done || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-end:
			return fmt.Errorf("%s: not within %v", what, limit)
		}
	}
}
