//go:build race

package actor

// The race detector makes a step several times as slow.
const (
	randomSteps = 150_000
	raceEnabled = true
)
