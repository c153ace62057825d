//go:build !linux

package main

import (
	"errors"
	"os/exec"
	"syscall"
)

func childAttr() *syscall.SysProcAttr { return nil }

// processors is unknown here, so that nothing is pinned.
func processors() []int { return nil }

var errNoPinning = errors.New("processes are pinned on Linux only")

func startOn(*exec.Cmd, []int) error { return errNoPinning }

func move(int, []int) error { return errNoPinning }
