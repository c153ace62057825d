package tether_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
)

// With several Close calls at once the hold still ends with ErrClosed. A second
// Close must not turn it into a release.
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
				require.True(t, isClosed(h.Lost())(), kind)
				require.ErrorIs(t, h.Err(), tether.ErrClosed, kind)
			}
		}
	})
}
