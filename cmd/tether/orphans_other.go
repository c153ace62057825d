//go:build unix && !aix && !solaris && !linux

package main

// adoptOrphans is for Linux, where the first process of a container may reap
// nobody.
func adoptOrphans() {}
