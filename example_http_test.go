package tether_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tetherlock/tether"
	"github.com/tetherlock/tether/tethertest"
)

// An HTTP handler with one lock per tenant. It waits until the request's context
// ends, and leaves nothing behind.
func ExampleClient_Acquire() {
	server, err := tethertest.Start("")
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	rdb := redis.NewClient(server.Options())
	defer rdb.Close()
	locks := tether.New(rdb)
	defer locks.Close()

	mux := http.NewServeMux()
	mux.Handle("POST /tenants/{tenant}/invoices", invoices{locks})
	post := func(ctx context.Context, tenant string) {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "POST", "/tenants/"+tenant+"/invoices", nil))
		fmt.Println(tenant, w.Code)
	}
	ctx := context.Background()

	// Another machine has the lock of one tenant. The request for it has a short
	// time-out.
	busy, err := locks.Acquire(ctx, "invoices:acme")
	if err != nil {
		log.Fatal(err)
	}
	impatient, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	post(impatient, "acme")
	post(ctx, "umbrella")
	if err := busy.Release(ctx); err != nil {
		log.Fatal(err)
	}
	post(ctx, "acme")

	left, err := rdb.PubSubNumSub(ctx, "invoices:acme", "invoices:umbrella").Result()
	fmt.Println("left behind:", left, err)
	// Output:
	// acme 503
	// umbrella 200
	// acme 200
	// left behind: map[invoices:acme:0 invoices:umbrella:0] <nil>
}

type invoices struct{ locks *tether.Client }

func (s invoices) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	tenant := r.PathValue("tenant")
	hold, err := s.locks.Acquire(r.Context(), "invoices:"+tenant)
	switch {
	case errors.Is(err, tether.ErrHeld):
		http.Error(w, "somebody else is on it", http.StatusServiceUnavailable)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	// The release must not depend on the request, which may have ended. Without a
	// deadline Release returns after five seconds at the latest.
	defer func() { _ = hold.Release(context.WithoutCancel(r.Context())) }()

	ctx, stop := hold.WithContext(r.Context()) // ends with the request or the hold
	defer stop()
	if err := writeInvoices(ctx, tenant); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func writeInvoices(ctx context.Context, _ string) error { return context.Cause(ctx) }
