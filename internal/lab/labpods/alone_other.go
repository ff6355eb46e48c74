//go:build !linux

package labpods

import "syscall"

// withUs gives a process a group of its own, so that Ctrl-C reaches only the one that looks after it.
func withUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
