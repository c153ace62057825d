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

// A store that refuses a write from a holder that has lost the lock and does not
// know it yet.
func ExampleFenced() {
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
	var prices store

	first, err := locks.Acquire(ctx, "prices", tether.Fenced())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the first holder writes:", prices.write(first.Token(), "bread 3"))

	// It is about to write again when its machine halts for a while. Its
	// connection breaks, and somebody else gets the lock.
	server.KillSubscribers("prices")
	second, err := locks.Acquire(ctx, "prices", tether.Fenced())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the second holder writes:", prices.write(second.Token(), "bread 4"))

	// The first holder goes on where it stopped, and does not check Lost.
	fmt.Println("the first holder writes:", prices.write(first.Token(), "bread 2"))
	fmt.Println("stored:", prices.text)
	if err := second.Release(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// the first holder writes: <nil>
	// the second holder writes: <nil>
	// the first holder writes: refused, somebody else has held the lock since
	// stored: bread 4
}

// store remembers the highest token that it has seen. In a database, check and
// write are one statement: UPDATE … SET text = $1, token = $2 WHERE token <= $2.
type store struct {
	token int64
	text  string
}

func (s *store) write(token int64, text string) error {
	if token < s.token {
		return errors.New("refused, somebody else has held the lock since")
	}
	s.token, s.text = token, text
	return nil
}
