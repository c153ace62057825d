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

// A leader that takes the lock again after a loss.
func ExampleLock_Do() {
	server, err := tethertest.Start("")
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	rdb := redis.NewClient(server.Options())
	defer rdb.Close()
	locks := tether.New(rdb)
	defer locks.Close()

	term := 0
	lead := func(ctx context.Context) error {
		term++
		fmt.Println("leading, term", term)
		if term == 2 {
			return nil
		}
		server.KillSubscribers("scheduler") // the connection breaks
		<-ctx.Done()
		return nil
	}
	err = campaign(context.Background(), locks.Lock("scheduler"), lead)
	fmt.Println("finished:", err)
	// Output:
	// leading, term 1
	// lost, another machine may lead now
	// leading, term 2
	// finished: <nil>
}

// campaign acquires the lock and calls lead, again and again while the lock is
// lost. It returns when lead returns for another reason, or ctx ends.
func campaign(ctx context.Context, lock *tether.Lock, lead func(context.Context) error) error {
	for {
		err := lock.Do(ctx, func(ctx context.Context, _ *tether.Hold) error { return lead(ctx) })
		if _, lost := errors.AsType[*tether.LostError](err); !lost {
			return err
		}
		fmt.Println("lost, another machine may lead now")
	}
}
