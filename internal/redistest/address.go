package redistest

import (
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

const loopback = "127.0.0.1"

// randomPort returns a port that nobody listens on. The port, and the bus port of
// a cluster node, which is 10000 higher, are below the range from which systems
// take the ports of outgoing connections. Otherwise a connection could have the
// port of a server while it restarts, and the server could not listen again.
func randomPort() int {
	for {
		port := 12000 + rand.IntN(10000)
		l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
		if err == nil {
			_ = l.Close()
			return port
		}
	}
}

func socketPath(dir string) string { return filepath.Join(dir, "s") }

// shortTempDir is the folder for temporary files. A Unix socket's path may have
// about 100 bytes. On macOS the default folder alone has about 50, and TMPDIR may
// be longer.
func shortTempDir() string {
	if dir := os.TempDir(); len(dir) <= 60 {
		return dir
	}
	return "/tmp"
}
