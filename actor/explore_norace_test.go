//go:build !race

package actor

const (
	randomSteps = 2_000_000
	raceEnabled = false
)
