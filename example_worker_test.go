package tether_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/tetherlock/tether"
	"github.com/tetherlock/tether/tethertest"
)

// A worker that stops when it has lost its lock.
func ExampleHold_Lost() {
	server, err := tethertest.Start("")
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	rdb := redis.NewClient(server.Options())
	defer rdb.Close()
	locks := tether.New(rdb)
	defer locks.Close()

	hold, err := locks.Acquire(context.Background(), "mailer")
	if err != nil {
		log.Fatal(err)
	}
	letters, sent := make(chan string), make(chan string)
	stopped := make(chan error)
	go func() { stopped <- sendLetters(hold, letters, sent) }()

	for _, letter := range []string{"to Ada", "to Grace"} {
		letters <- letter
		fmt.Println("sent", <-sent)
	}
	server.KillSubscribers("mailer") // the connection breaks

	lost, ok := errors.AsType[*tether.LostError](<-stopped)
	fmt.Println("lost:", ok, lost.Name)
	// Output:
	// sent to Ada
	// sent to Grace
	// lost: true mailer
}

// sendLetters works until there are no more letters, or the lock is lost.
func sendLetters(hold *tether.Hold, letters <-chan string, sent chan<- string) error {
	for {
		select {
		case letter, more := <-letters:
			if !more {
				return hold.Release(context.Background())
			}
			// The context of the work ends with the hold too.
			if err := sendLetter(hold.Context()); err != nil {
				return err
			}
			sent <- letter
		case <-hold.Lost():
			return hold.Err()
		}
	}
}

func sendLetter(ctx context.Context) error { return context.Cause(ctx) }
