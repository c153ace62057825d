package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// etcdSetup is what an etcd process is started with.
type etcdSetup struct {
	NoSync bool `json:"no_sync"`
}

// etcdServer is an embedded etcd in a process of its own.
type etcdServer struct {
	addr  string
	child *child
}

func startEtcd(noSync bool) (*etcdServer, error) {
	cmd, err := roleCommand(roleEtcd, etcdSetup{noSync})
	if err != nil {
		return nil, err
	}
	c, err := start(cmd, nil)
	if err != nil {
		return nil, err
	}
	s := &etcdServer{child: c}
	err = c.readJSON(&s.addr)
	go c.drain()
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *etcdServer) stop() { s.child.stop() }

// serveEtcd writes its address, and serves until its input ends.
func serveEtcd(in io.Reader, out io.Writer) (err error) {
	var s etcdSetup
	if err := json.Unmarshal([]byte(os.Getenv(setupVariable)), &s); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tether-bench-etcd-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	client := "http://" + loopback(freePort())
	e, err := embed.StartEtcd(etcdConfig(dir, client, s.NoSync))
	if err != nil {
		return err
	}
	defer e.Close()
	select {
	case <-e.Server.ReadyNotify():
	case err := <-e.Err():
		return err
	case <-time.After(time.Minute):
		return errors.New("etcd is not ready within a minute")
	}
	if err := json.NewEncoder(out).Encode(client); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

func etcdConfig(dir, client string, noSync bool) *embed.Config {
	peer := "http://" + loopback(freePort())
	c := embed.NewConfig()
	c.Dir = dir
	c.ListenClientUrls, c.AdvertiseClientUrls = urls(client), urls(client)
	c.ListenPeerUrls, c.AdvertisePeerUrls = urls(peer), urls(peer)
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.UnsafeNoFsync = noSync
	c.LogLevel = "error"
	return c
}

func urls(text string) []url.URL {
	u, err := url.Parse(text)
	if err != nil {
		panic(err) // the text is built in this file
	}
	return []url.URL{*u}
}
