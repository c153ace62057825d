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

// Readers that hold a lock together, and a writer that waits for them.
func ExampleShared() {
	server, err := tethertest.Start("")
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	rdb := redis.NewClient(server.Options())
	defer rdb.Close()
	locks := tether.New(rdb)
	defer locks.Close()
	ctx := context.Background()

	var readers []*tether.Hold
	for range 3 {
		hold, err := locks.Acquire(ctx, "catalogue", tether.Shared())
		if err != nil {
			log.Fatal(err)
		}
		readers = append(readers, hold)
	}
	fmt.Println("reading at the same time:", len(readers))

	writer := locks.Lock("catalogue")
	events := writer.Events()
	granted := writer.AcquireAsync(ctx)
	untilElected(events)
	_, err = locks.TryAcquire(ctx, "catalogue", tether.Shared())
	fmt.Println("the writer is next, a new reader has to wait:", errors.Is(err, tether.ErrHeld))

	for _, hold := range readers {
		fmt.Println("a reader is done")
		if err := hold.Release(ctx); err != nil {
			log.Fatal(err)
		}
	}
	result := <-granted
	if result.Err != nil {
		log.Fatal(result.Err)
	}
	fmt.Println("writing alone")
	if err := result.Hold.Release(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// reading at the same time: 3
	// the writer is next, a new reader has to wait: true
	// a reader is done
	// a reader is done
	// a reader is done
	// writing alone
}

func untilElected(events <-chan tether.Event) {
	for e := range events {
		if _, ok := e.(tether.ElectedEvent); ok {
			return
		}
	}
}
