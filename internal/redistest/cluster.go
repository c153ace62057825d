package redistest

import "testing"

// StartCluster1 starts a node in cluster mode that serves all slots alone.
func StartCluster1(t testing.TB, args ...string) *Server {
	t.Helper()
	s := Start(t, append([]string{"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"}, args...)...)
	s.MustDo(t, "CLUSTER", "ADDSLOTSRANGE", 0, 16383)
	// For two seconds after its start a node reports the state "fail".
	err := await(readyWithin, "the cluster serves", func() (bool, error) {
		info, err := s.Do("CLUSTER", "INFO")
		return err == nil && lineField(info, "cluster_state") == "ok", nil
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, s.log())
	}
	return s
}
