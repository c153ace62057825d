//go:build unix && !aix && !solaris

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/tetherlock/tether"
)

// probeOutput is what tether probe --json prints.
type probeOutput struct {
	Name    string        `json:"name"`
	Free    bool          `json:"free"`
	Holders []participant `json:"holders"`
}

type participant struct {
	ID      string `json:"id"`
	Mode    string `json:"mode"`
	Elected bool   `json:"elected,omitempty"`
	Legacy  bool   `json:"legacy,omitempty"`
	Label   string `json:"label,omitempty"`
	Address string `json:"address,omitempty"`
	HeldMS  int64  `json:"held_ms,omitempty"`
	TTLMS   int64  `json:"ttl_ms,omitempty"`
}

func probeCommand() *cobra.Command {
	var server redisFlag
	var asJSON, lease bool
	c := &cobra.Command{
		Use:   "probe NAME",
		Short: "Tell who holds a lock; changes nothing",
		Long: `Asks all who take part in the lock NAME who they are: whoever holds it (exclusive
or shared), and whoever is just about to (pending). It changes nothing, and the
answer may be outdated when you read it. With --lease it asks who holds the lease
of that name, and when its key expires unless it is renewed.

Exit codes: 0 when everybody has answered, whether somebody holds the lock or
not; 64 wrong usage; 69 when Redis can't be reached or somebody doesn't answer.

JSON: {"name", "free", "holders": [{"id", "mode", "elected", "legacy", "label",
"address", "held_ms", "ttl_ms"}]}, where what is false, empty or unknown is left out of a
holder. "free" is true only if nobody takes part in the lock.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("one lock, please: tether probe NAME")
			}
			return nil
		},
	}
	server.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&lease, "lease", false, "ask about the lease NAME")
	c.RunE = func(c *cobra.Command, args []string) error {
		o, err := server.options()
		if err != nil {
			return err
		}
		rdb := redis.NewClient(o)
		defer func() { _ = rdb.Close() }() // it has no open connections
		locks := tether.New(rdb)
		defer func() { _ = locks.Close() }() // always nil
		probe := locks.Probe
		if lease {
			probe = locks.ProbeLease
		}
		list, err := probe(c.Context(), args[0])
		if list == nil && err != nil {
			return explain(err, args[0], o)
		}
		show := printText
		if asJSON {
			show = printJSON
		}
		if printed := show(c.OutOrStdout(), args[0], list, err == nil); printed != nil {
			return machineError("print", printed)
		}
		if err != nil {
			return &exitError{exitUnavailable, errorText(err) + ": CLIENT LIST on the server shows who they are"}
		}
		return nil
	}
	return c
}

// printJSON prints the participants that answered. A silent participant may be a
// holder, so the lock is free only if the list is complete.
func printJSON(w io.Writer, name string, list []tether.Holder, complete bool) error {
	r := probeOutput{Name: name, Free: complete && len(list) == 0, Holders: []participant{}}
	for _, h := range list {
		r.Holders = append(r.Holders, participant{h.ID, h.Mode, h.Elected, h.Legacy, h.Label, h.Addr, h.Held.Milliseconds(), h.TTL.Milliseconds()})
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

func printText(w io.Writer, name string, list []tether.Holder, complete bool) error {
	if len(list) == 0 {
		if complete {
			_, err := fmt.Fprintf(w, "%s is free\n", name)
			return err
		}
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if list[0].TTL > 0 {
		fmt.Fprintln(t, "MODE\tID\tEXPIRES IN")
		fmt.Fprintf(t, "%s\t%s\t%v\n", mode(list[0]), list[0].ID, list[0].TTL)
		return t.Flush()
	}
	fmt.Fprintln(t, "MODE\tID\tADDRESS\tHELD FOR\tLABEL")
	for _, h := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", mode(h), h.ID, cmp.Or(h.Addr, "?"), heldFor(h), label(h))
	}
	return t.Flush()
}

func mode(h tether.Holder) string {
	switch {
	case h.Legacy:
		return h.Mode + " (legacy)"
	case h.Elected && h.Mode == "pending":
		return h.Mode + " (next)"
	}
	return h.Mode
}

func heldFor(h tether.Holder) string {
	switch {
	case h.Held > 0:
		return h.Held.Round(time.Millisecond).String()
	case h.Mode == "pending":
		return "-"
	}
	return "?"
}

// label is the holder's label. It comes from another machine, so it is quoted if
// it has characters that don't print: they could break the line or move the
// cursor.
func label(h tether.Holder) string {
	if strings.ContainsFunc(h.Label, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(h.Label)
	}
	return cmp.Or(h.Label, "-")
}
