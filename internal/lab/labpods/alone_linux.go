package labpods

import "syscall"

// withUs gives a process a group of its own, so that Ctrl-C reaches only the one that looks after it, and ends it with
// this process, however that ends.
func withUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
