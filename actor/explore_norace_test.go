//go:build !race

package actor

const (
	randomSteps = 1_000_000
	raceEnabled = false
)
