package main

import (
	"errors"
	"strings"
	"time"
)

// lossTimeout is how long to wait for a loss.
const lossTimeout = 10 * time.Second

var (
	errNoLoss       = errors.New("the hold was not lost")
	errNoConnection = errors.New("the hold's connection is not in the list")
)

// lose acquires the lock and has the server kill its connection, Ops times. The
// time runs from sending CLIENT KILL.
func (w *worker) lose(req request) (response, error) {
	admin, err := dialRaw(background, w.endpoints.Redis)
	if err != nil {
		return response{}, err
	}
	defer func() { _ = admin.close() }() // it has no unread data
	var took []int64
	for range req.Ops {
		d, err := w.loseOnce(admin, req.Name)
		if err != nil {
			return response{}, err
		}
		took = append(took, d)
	}
	return response{Took: took}, nil
}

func (w *worker) loseOnce(admin *rawSocket, name string) (int64, error) {
	h, err := w.lock.(*tetherLocker).lock(name).Acquire(background)
	if err != nil {
		return 0, err
	}
	list, err := admin.call("CLIENT", "LIST", "TYPE", "pubsub")
	if err != nil {
		return 0, err
	}
	id := clientID(list, name+"-lock-"+h.ID())
	if id == "" {
		return 0, errNoConnection
	}
	kill := command("CLIENT", "KILL", "ID", id)
	begin := time.Now()
	lost := make(chan int64, 1)
	go func() {
		<-h.Lost()
		lost <- int64(time.Since(begin))
	}()
	if _, err := admin.exchange(kill, 1); err != nil {
		return 0, err
	}
	select {
	case d := <-lost:
		return d, nil
	case <-time.After(lossTimeout):
		return 0, errNoLoss
	}
}

// clientID finds the id of a connection by its name, in a list of clients.
func clientID(list, name string) string {
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		var id string
		for _, f := range fields {
			if v, ok := strings.CutPrefix(f, "id="); ok {
				id = v
			}
			if f == "name="+name {
				return id
			}
		}
	}
	return ""
}
