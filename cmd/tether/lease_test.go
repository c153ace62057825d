//go:build unix && !aix && !solaris

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// waitForStopFile is a piece of shell that waits until the file $0 exists.
const waitForStopFile = `; until [ -e "$0" ]; do sleep 0.01; done`

func TestLeaseIsTakenHeldAndGone(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		code, out, errs := s.runToEnd(t, "probe", "x", "--lease")
		require.Zero(t, code, errs)
		require.Equal(t, "x is free\n", out)

		stop := filepath.Join(t.TempDir(), "stop")
		p := s.start(t, "run", "x", "--lease", "--ttl", "2s", "--fenced", "--", "sh", "-c", showToken+waitForStopFile, stop)
		require.Positive(t, p.printsToken(t))
		code, out, errs = s.runToEnd(t, "probe", "x", "--lease")
		require.Zero(t, code, errs)
		require.Regexp(t, `^MODE +ID +EXPIRES IN\nexclusive +[0-9a-f]{32} +[12]`, out)
		code, out, errs = s.runToEnd(t, "probe", "x", "--lease", "--json")
		require.Zero(t, code, errs)
		var r probeOutput
		require.NoError(t, json.Unmarshal([]byte(out), &r))
		require.Len(t, r.Holders, 1)
		require.Positive(t, r.Holders[0].TTLMS)

		code, _, errs = s.runToEnd(t, "run", "x", "--lease", "--wait", "0", "--", "true")
		require.Equal(t, exitHeld, code)
		require.Contains(t, errs, r.Holders[0].ID)
		// A presence lock of that name is another lock.
		code, _, errs = s.runToEnd(t, "run", "x", "--wait", "0", "--", "true")
		require.Zero(t, code, errs)

		require.NoError(t, os.WriteFile(stop, nil, 0o600))
		require.Zero(t, p.code(t))
		_, out, _ = s.runToEnd(t, "probe", "x", "--lease")
		require.Equal(t, "x is free\n", out)
	})
}

func TestLeaseAndOtherFlags(t *testing.T) {
	s := embedded(t)
	for args, want := range map[string]string{
		"--ttl 5s":                             `--ttl is for leases: add --lease`,
		"--renew-interval 1s":                  `--renew-interval is for leases`,
		"--lease --shared":                     `--shared is for presence locks`,
		"--lease --label me":                   `--label is for presence locks`,
		"--lease --self-check 1s":              `--self-check is for another kind of lock`,
		"--lease --unavailable-timeout 1s":     `--unavailable-timeout is for another kind of lock`,
		"--lease --ttl 1s --renew-interval 1s": `--renew-interval must be shorter than the TTL of 1s`,
		"--lease --ttl 1ms":                    `--ttl needs at least`,
	} {
		code, _, errs := s.runToEnd(t, append(append([]string{"run", "x"}, strings.Fields(args)...), "--", "true")...)
		require.Equal(t, exitUsage, code, args)
		require.Regexp(t, regexp.QuoteMeta(want), errs, args)
	}
}
