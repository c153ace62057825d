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

// redisFlag is --redis, the URL of the server.
type redisFlag struct{ url string }

func (f *redisFlag) add(c *cobra.Command) {
	c.Flags().StringVar(&f.url, "redis", "",
		"`URL` of the server: redis://, rediss:// or unix:// (default $"+urlVariable+", else "+defaultURL+")")
}

// options parses the URL. Errors never contain its text: it may have a password.
// Errors of net/url quote the text, so they are left out.
func (f *redisFlag) options() (*redis.Options, error) {
	o, err := redis.ParseURL(cmp.Or(f.url, os.Getenv(urlVariable), defaultURL))
	if err == nil {
		return o, nil
	}
	source := "--redis"
	if f.url == "" {
		source = urlVariable
	}
	reason := ""
	if _, quotesURL := errors.AsType[*url.Error](err); !quotesURL {
		reason = " (" + oneLine(err.Error()) + ")"
	}
	return nil, usageError("%s is no Redis URL%s: write redis://user:password@host:port, rediss://… or unix:///path", source, reason)
}
