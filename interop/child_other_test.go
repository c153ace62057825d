//go:build !linux

package interop

import "syscall"

func childAttr() *syscall.SysProcAttr { return nil }
