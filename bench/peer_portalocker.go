package main

import (
	_ "embed"
	"os"
	"path/filepath"
	"time"
)

// portalockerVersion is the subfolder of TETHER_PYTHONS with the virtual
// environment.
const portalockerVersion = "4.4.2"

// portalockerScript takes the same requests as a worker of the other peers.
//
//go:embed peer_portalocker.py
var portalockerScript string

func portalockerPeer() *peer {
	return &peer{
		library: "portalocker", about: "Python, " + portalockerVersion + ", defaults: it retries every 250 ms",
		retryInterval: 250 * time.Millisecond, python: true,
	}
}

func portalockerBestPeer() *peer {
	return &peer{
		library: "portalocker", setting: best, about: "check_interval 10 ms, thread_sleep_time 1 ms, a connection that is kept",
		retryInterval: 10 * time.Millisecond, python: true,
	}
}

// pythonProgram is the Python with portalocker, empty if there is none.
func pythonProgram() string {
	folder := os.Getenv("TETHER_PYTHONS")
	if folder == "" {
		return ""
	}
	path := filepath.Join(folder, portalockerVersion, "bin", "python")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}
