package redistest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Sentinel is one running Sentinel that watches one master, with a quorum of one.
// The embedded server is the Sentinel itself.
type Sentinel struct {
	*Server
	MasterName string

	nodes []*Server
}

// StartSentinel starts a Sentinel for a master, under the given name, and waits
// until it would promote each of the replicas. It considers a master down that
// has not answered for a second.
func StartSentinel(t testing.TB, masterName string, master *Server, replicas ...*Server) *Sentinel {
	t.Helper()
	server := start(t, launchConfig{
		binary: sentinelBinary,
		args: func(dir string, port int) ([]string, error) {
			return writeSentinelConfig(dir, port, masterName, master.Port)
		},
	})
	s := &Sentinel{Server: server, MasterName: masterName, nodes: append([]*Server{master}, replicas...)}
	err := await(readyWithin, "Sentinel knows the replicas", func() (bool, error) {
		promotable, err := s.promotableReplicas()
		return err == nil && promotable == len(replicas), nil
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, s.log())
	}
	return s
}

// FailoverOptions returns fresh options for a client that finds the master
// through Sentinel.
func (s *Sentinel) FailoverOptions() *redis.FailoverOptions {
	return &redis.FailoverOptions{MasterName: s.MasterName, SentinelAddrs: []string{s.Addr}}
}

// Master returns the server that Sentinel names as the master.
func (s *Sentinel) Master() (*Server, error) {
	reply, err := s.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.MasterName)
	if err != nil {
		return nil, err
	}
	var parts []string
	for _, part := range asSlice(reply) {
		parts = append(parts, fmt.Sprint(part))
	}
	for _, node := range s.nodes {
		if host, port, _ := net.SplitHostPort(node.Addr); len(parts) == 2 && parts[0] == host && parts[1] == port {
			return node, nil
		}
	}
	return nil, fmt.Errorf("sentinel names an unknown master: %v", parts)
}

// Failover makes Sentinel promote a replica and returns the new master when
// Sentinel announces it. The old master runs on. It stays a master until Sentinel
// demotes it, which can be ten seconds later.
func (s *Sentinel) Failover(t testing.TB) *Server {
	t.Helper()
	old, err := s.Master()
	if err != nil {
		t.Fatal(err)
	}
	var refused error
	err = await(readyWithin, "the failover begins", func() (bool, error) {
		_, refused = s.Do("SENTINEL", "FAILOVER", s.MasterName)
		return refused == nil, nil
	})
	if err != nil {
		t.Fatalf("%v: %v", err, refused)
	}
	return s.AwaitFailover(t, old)
}

// AwaitFailover waits until Sentinel names another master than old, for example
// after old was killed, and returns the new one.
func (s *Sentinel) AwaitFailover(t testing.TB, old *Server) *Server {
	t.Helper()
	var master *Server
	err := await(2*readyWithin, "the new master is announced", func() (bool, error) {
		var err error
		master, err = s.Master()
		return err == nil && master != old, nil
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, s.log())
	}
	return master
}

// promotableReplicas counts the replicas that Sentinel would promote.
func (s *Sentinel) promotableReplicas() (int, error) {
	reply, err := s.Do("SENTINEL", "REPLICAS", s.MasterName)
	if err != nil {
		return 0, err
	}
	promotable := 0
	for _, r := range asSlice(reply) {
		fields, _ := r.(map[any]any)
		if fields["flags"] == "slave" && fields["master-link-status"] == "ok" && fields["role-reported"] == "slave" {
			promotable++
		}
	}
	return promotable, nil
}

// writeSentinelConfig writes the configuration file and returns the arguments
// that name it. Sentinel does not start without a file that it can rewrite.
func writeSentinelConfig(dir string, port int, name string, masterPort int) ([]string, error) {
	path := filepath.Join(dir, "sentinel.conf")
	lines := []string{
		"port " + strconv.Itoa(port),
		"bind " + loopback,
		"dir " + strconv.Quote(dir),
		fmt.Sprintf("sentinel monitor %s %s %d 1", name, loopback, masterPort),
		"sentinel down-after-milliseconds " + name + " 1000",
		"sentinel failover-timeout " + name + " 3000",
	}
	return []string{path}, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}

func asSlice(reply any) []any {
	list, _ := reply.([]any)
	return list
}
