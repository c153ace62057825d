//go:build !linux

package stress

import "syscall"

func childAttr() *syscall.SysProcAttr { return nil }
