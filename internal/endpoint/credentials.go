package endpoint

import (
	"context"

	"github.com/redis/go-redis/v9/auth"

	"github.com/tetherlock/tether/wire"
)

// credentials are the ways to log in, in go-redis's own order of preference.
type credentials struct {
	streaming auth.StreamingCredentialsProvider
	withCtx   func(ctx context.Context) (username, password string, err error)
	plain     func() (username, password string)
	static    wire.Login
}

// renewable says whether asking again may give other credentials.
func (c *credentials) renewable() bool {
	return c.streaming != nil || c.withCtx != nil || c.plain != nil
}

// get asks for credentials. Rotated, if not nil, delivers newer ones until stop is
// called.
func (c *credentials) get(ctx context.Context) (login wire.Login, rotated <-chan wire.Login, stop func(), err error) {
	switch {
	case c.streaming != nil:
		return subscribeLogin(c.streaming)
	case c.withCtx != nil:
		login.User, login.Password, err = c.withCtx(ctx)
	case c.plain != nil:
		login.User, login.Password = c.plain()
	default:
		login = c.static
	}
	return login, nil, nil, err
}

// listener delivers new credentials to the owner of a socket. Only the newest are
// kept.
type listener struct{ logins chan wire.Login }

func subscribeLogin(p auth.StreamingCredentialsProvider) (wire.Login, <-chan wire.Login, func(), error) {
	l := &listener{make(chan wire.Login, 1)}
	first, cancel, err := p.Subscribe(l)
	if err != nil {
		return wire.Login{}, nil, nil, err
	}
	user, password := first.BasicAuth()
	stop := func() {
		if cancel != nil {
			_ = cancel() // its error changes nothing here
		}
	}
	return wire.Login{User: user, Password: password}, l.logins, stop, nil
}

// OnNext takes new credentials. The provider calls it on any goroutine.
func (l *listener) OnNext(c auth.Credentials) {
	user, password := c.BasicAuth()
	for {
		select {
		case l.logins <- wire.Login{User: user, Password: password}:
			return
		default:
		}
		select {
		case <-l.logins: // outdated
		default:
		}
	}
}

// OnError ignores a provider that fails to get new credentials. The old ones stay
// in use; when the server no longer accepts them, the socket ends.
func (l *listener) OnError(error) {}
