//go:build unix && !aix && !solaris

package main

import (
	"cmp"
	"errors"
	"net/url"
	"os"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
)

const (
	urlVariable = "TETHER_REDIS_URL"
	defaultURL  = "redis://localhost:6379"
)

// serverFlag says which Redis is meant.
type serverFlag struct{ url string }

func (f *serverFlag) add(c *cobra.Command) {
	c.Flags().StringVar(&f.url, "redis", "",
		"`URL` of the server: redis://, rediss:// or unix:// (default $"+urlVariable+", else "+defaultURL+")")
}

// options reads the URL. Its text is never repeated: passwords are in there,
// and net/url quotes them in its errors.
func (f *serverFlag) options() (*redis.Options, error) {
	o, err := redis.ParseURL(cmp.Or(f.url, os.Getenv(urlVariable), defaultURL))
	if err == nil {
		return o, nil
	}
	source := "--redis"
	if f.url == "" {
		source = urlVariable
	}
	reason := ""
	if _, quotes := errors.AsType[*url.Error](err); !quotes {
		reason = " (" + oneLine(err.Error()) + ")"
	}
	return nil, usage("%s is no Redis URL%s: write redis://user:password@host:port, rediss://… or unix:///path", source, reason)
}
