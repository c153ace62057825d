package redistest

import (
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

const loopback = "127.0.0.1"

// randomPort returns a port that nobody listens on. It is chosen below the
// range from which systems take the ports of outgoing connections: one of
// those would keep a server from coming back on its own port. The bus of a
// cluster node, 10000 higher, is below it too.
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

// shortTemp is the folder for temporary files. The path of a Unix socket has
// about a hundred bytes at most, and some systems' folder takes most of them.
func shortTemp() string {
	if dir := os.TempDir(); len(dir) <= 60 {
		return dir
	}
	return "/tmp"
}
