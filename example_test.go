package tether_test

import (
	"context"
	"fmt"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/tetherlock/tether"
	"github.com/tetherlock/tether/tethertest"
)

// Work that runs on one machine at a time.
func Example() {
	server, err := tethertest.Start("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	if err := underLock(context.Background(), server.Addr()); err != nil {
		log.Fatal(err)
	}
	// Output: the report is written
}

func underLock(ctx context.Context, addr string) error {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	locks := tether.New(rdb)
	err := locks.Do(ctx, "nightly-report", func(ctx context.Context, h *tether.Hold) error {
		return writeReport(ctx) // ctx ends when the lock is lost
	})
	_ = locks.Close()
	_ = rdb.Close()
	return err
}

func writeReport(context.Context) error {
	fmt.Println("the report is written")
	return nil
}
