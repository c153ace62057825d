package tether_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
)

// However many close a Lock at once, its hold is lost and not given back.
func TestClosesAtOnce(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		for range 200 {
			for kind, l := range map[string]*tether.Lock{"presence": c.Lock("l"), "lease": c.Lease("lease")} {
				h, err := l.Acquire(t.Context())
				require.NoError(t, err)
				var wg sync.WaitGroup
				for range 4 {
					wg.Go(func() {
						if err := l.Close(); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				require.True(t, closed(h.Lost())(), kind)
				require.ErrorIs(t, h.Err(), tether.ErrClosed, kind)
			}
		}
	})
}
