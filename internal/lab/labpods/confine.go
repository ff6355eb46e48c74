package labpods

import (
	"os/exec"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// confinement is what a container's security settings take from its process. The user id is not among it: the files of
// the lab belong to whoever runs it.
type confinement struct {
	// noNewPrivileges keeps programs from giving the process more rights than it has.
	noNewPrivileges bool
	// noCapabilities leaves a process of root nothing that other users' processes don't have.
	noCapabilities bool
	// readOnlyRoot allows it to write below the folders in writable only: its volumes.
	readOnlyRoot bool
	writable     []string
}

// confinement reads the settings of the container.
func (c *container) confinement() confinement {
	var out confinement
	s := c.spec.SecurityContext
	if s == nil {
		return out
	}
	out.noNewPrivileges = s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation
	all := func(name corev1.Capability) bool { return strings.EqualFold(string(name), "ALL") }
	out.noCapabilities = s.Capabilities != nil && len(s.Capabilities.Add) == 0 &&
		slices.ContainsFunc(s.Capabilities.Drop, all)
	out.readOnlyRoot = s.ReadOnlyRootFilesystem != nil && *s.ReadOnlyRootFilesystem
	for _, mount := range c.spec.VolumeMounts {
		if out.readOnlyRoot && !mount.ReadOnly {
			out.writable = append(out.writable, c.p.path("volumes", mount.Name, mount.SubPath))
		}
	}
	return out
}

// launch starts the process, confined as its container says. The channel is closed when it has ended.
//
// Both happen on a thread of its own. What is taken from a thread its children lack, too, and can't be given back; and
// Linux ends the process as soon as the thread that has started it is gone.
func (c *container) launch(cmd *exec.Cmd) (<-chan struct{}, error) {
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		err := confine(c.confinement(), c.p.r.o.Log)
		if err == nil {
			err = cmd.Start()
		}
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	return ended, <-started
}
