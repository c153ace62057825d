package tether_test

import (
	"context"
	"fmt"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/tetherlock/tether"
	"github.com/tetherlock/tether/tethertest"
)

// An event loop that never blocks: acquire, release and events of a lock are cases
// of one select.
func ExampleLock_AcquireAsync() {
	server, err := tethertest.Start("")
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	rdb := redis.NewClient(server.Options())
	defer rdb.Close()
	locks := tether.New(rdb)
	defer locks.Close()

	lock := locks.Lock("printer")
	loop := printerLoop{
		events:   lock.Events(),
		acquired: lock.AcquireAsync(context.Background()),
	}
	for loop.busy() {
		loop.turn()
	}
	_ = lock.Close()
	// The result of a call and its event are two cases of the select, either
	// of which may come first.
	//
	// Unordered output:
	// an attempt begins
	// the lock is granted, round trips: 1
	// printing
	// done: <nil>
	// the lock is released
}

// printerLoop has the channels of the select. A nil channel is not waited for.
type printerLoop struct {
	events   <-chan tether.Event
	acquired <-chan tether.Result
	printed  <-chan struct{}
	lost     <-chan struct{}
	released <-chan error
	hold     *tether.Hold
}

func (l *printerLoop) busy() bool {
	return l.events != nil || l.acquired != nil || l.printed != nil || l.released != nil
}

func (l *printerLoop) turn() {
	select {
	case r := <-l.acquired:
		l.acquired = nil // there is exactly one result
		if r.Err != nil {
			fmt.Println("not acquired:", r.Err)
			l.events = nil
			return
		}
		l.hold, l.lost = r.Hold, r.Hold.Lost()
		l.printed = startPrinting()
	case <-l.printed:
		l.printed, l.lost = nil, nil
		l.released = l.hold.ReleaseAsync()
	case <-l.lost:
		l.printed, l.lost = nil, nil // somebody else may print now
		fmt.Println(l.hold.Err())
	case err := <-l.released:
		l.released = nil
		fmt.Println("done:", err)
	case e := <-l.events:
		l.event(e)
	}
}

func (l *printerLoop) event(e tether.Event) {
	switch e := e.(type) {
	case tether.AttemptEvent:
		fmt.Println("an attempt begins")
	case tether.GrantedEvent:
		fmt.Println("the lock is granted, round trips:", e.RoundTrips)
	case tether.ReleasedEvent:
		fmt.Println("the lock is released")
		l.events = nil
	case tether.LostEvent:
		l.events = nil
	}
}

func startPrinting() <-chan struct{} {
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		fmt.Println("printing")
	}()
	return printed
}
