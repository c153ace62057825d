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

// process is a child process. Its exit status is collected when somebody asks
// (waitpid with WNOHANG), not by a goroutine in os/exec. With such a goroutine, a
// server that lives as long as its test package would be a leak in every test
// that checks for leaked goroutines.
type process struct {
	pid int // 0 before the start, and when the exit status is collected
}

// startProcess starts argv in dir, with its output appended to the log there.
func startProcess(dir string, argv []string) (*process, error) {
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
		// Redis does not start with a locale that is not installed.
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

// exited reports whether the process has ended, and collects its exit status.
// Until then no other process can have the pid, so that signalling it is safe.
func (p *process) exited() bool {
	return p.wait(syscall.WNOHANG)
}

// wait collects the exit status. It returns false if the process still runs,
// which happens only with WNOHANG.
func (p *process) wait(options int) bool {
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
		p.wait(0)
	}
	return nil
}

// stop kills the process and waits for its end. On SIGTERM a master would wait for
// replicas that lag, and there is nothing to save. SIGCONT comes first: it fails
// if the process has ended.
func (p *process) stop() {
	if p.signal(syscall.SIGCONT) == nil {
		_ = p.signal(syscall.SIGKILL)
	}
}

// await checks a condition every 10 ms until it holds, has an error, or the limit
// is over.
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
