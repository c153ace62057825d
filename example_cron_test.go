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

// A cron job that starts on every machine and runs on one of them. Where the lock
// is held it is skipped.
func ExampleClient_TryAcquire() {
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

	other, err := locks.Acquire(ctx, "backup") // another machine was first
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("first night:", backup(ctx, locks))
	if err := other.Release(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("second night:", backup(ctx, locks))
	// Output:
	// skipped
	// first night: <nil>
	// backed up
	// second night: <nil>
}

func backup(ctx context.Context, locks *tether.Client) (err error) {
	hold, err := locks.TryAcquire(ctx, "backup")
	if errors.Is(err, tether.ErrHeld) {
		fmt.Println("skipped")
		return nil
	}
	if err != nil {
		return err // for example, Redis cannot be reached: perhaps no machine runs the job
	}
	defer func() { err = errors.Join(err, hold.Release(ctx)) }()
	fmt.Println("backed up")
	return nil
}
