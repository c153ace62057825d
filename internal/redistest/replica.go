package redistest

import (
	"strconv"
	"testing"
)

// StartReplica starts a replica of a server, which must listen on plain TCP,
// and waits until it is in sync.
func StartReplica(t testing.TB, master *Server, args ...string) *Server {
	t.Helper()
	s := Start(t, append([]string{"--replicaof", loopback + " " + strconv.Itoa(master.Port)}, args...)...)
	err := await(readyWithin, "the replica is in sync", func() (bool, error) {
		status, err := s.infoField("replication", "master_link_status")
		return err == nil && status == "up", nil
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, s.log())
	}
	return s
}
