//go:build !linux

package main

import (
	"errors"
	"os/exec"
	"syscall"
)

func childProcAttr() *syscall.SysProcAttr { return nil }

// processors returns nil, so that nothing is pinned.
func processors() []int { return nil }

var errNoPinning = errors.New("processes are pinned on Linux only")

func startPinned(*exec.Cmd, []int) error { return errNoPinning }

func pinProcess(int, []int) error { return errNoPinning }
