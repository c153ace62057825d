//go:build !unix || aix || solaris

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "tether: this command needs Linux, macOS or a BSD; the library works here: go doc github.com/tetherlock/tether")
	os.Exit(69)
}
