//go:build unix && !aix && !solaris && !linux

package main

// becomeSubreaper does nothing: only in Linux containers the first process may
// not wait for orphans.
func becomeSubreaper() {}
