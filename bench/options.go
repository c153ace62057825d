package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"
)

// options say what a run measures, and how long.
type options struct {
	rounds   int
	duration time.Duration
	peers    []string // libraries, or peers by their ids
	sections []string
	out      string
	quick    bool
}

// Sizes of a run.
const (
	defaultRounds   = 15
	defaultDuration = time.Second
	quickRounds     = 1
	quickDuration   = 150 * time.Millisecond
)

func parseOptions(args []string) (options, error) {
	var o options
	var peers, chosen string
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.IntVar(&o.rounds, "rounds", defaultRounds, "interleaved rounds of each latency; other work has a part of them")
	f.DurationVar(&o.duration, "duration", defaultDuration, "the length of each timed run; holding and waiting take ten times as long")
	f.StringVar(&peers, "peers", "", "the peers, with commas: a library or library:setting (default all; tether and the floor always)")
	f.StringVar(&chosen, "sections", "", "the sections, with commas (default all): "+strings.Join(sectionNames(), ", "))
	f.StringVar(&o.out, "out", "report", "the folder of the report")
	f.BoolVar(&o.quick, "quick", false, "a short run that shows that everything works; its figures say little")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.quick {
		o.shorten(f)
	}
	o.peers, o.sections = list(peers), list(chosen)
	return o, o.check()
}

// shorten applies -quick. Values that were given stay.
func (o *options) shorten(f *flag.FlagSet) {
	given := map[string]bool{}
	f.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if !given["rounds"] {
		o.rounds = quickRounds
	}
	if !given["duration"] {
		o.duration = quickDuration
	}
}

func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

func (o *options) check() error {
	if o.rounds < 1 || o.duration < 10*time.Millisecond {
		return errors.New("a run needs a round, and a duration of 10 ms or more")
	}
	for _, name := range o.sections {
		if !slices.Contains(sectionNames(), name) {
			return fmt.Errorf("no section %q; there are %s", name, strings.Join(sectionNames(), ", "))
		}
	}
	for _, name := range o.peers {
		if !slices.ContainsFunc(allPeers(), func(p *peer) bool { return p.is(name) }) {
			return fmt.Errorf("no peer %q", name)
		}
	}
	return nil
}

// is reports whether a name means this peer.
func (p *peer) is(name string) bool { return p.library == name || p.id() == name }

// wants reports whether a peer takes part. The floor and tether always do: they
// are what the others are compared with.
func (o *options) wants(p *peer) bool {
	return len(o.peers) == 0 || p.library == floorLibrary || p.library == tetherLibrary || slices.ContainsFunc(o.peers, p.is)
}

// part returns a fraction of the rounds, at least one.
func (o *options) part(numerator, denominator int) int {
	return max(1, o.rounds*numerator/denominator)
}
