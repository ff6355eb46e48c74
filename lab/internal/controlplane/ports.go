package controlplane

import (
	"errors"
	"fmt"
	"net"
)

// ports are the loopback ports of one lab.
type ports struct {
	etcd, etcdPeer, apiServer, controllerManager, scheduler, kwok int
}

// freePorts asks the kernel for ports that nobody uses now. Somebody may take
// one before the part listens on it; then the start is tried again.
func freePorts() (ports, error) {
	var p ports
	var held []net.Listener
	for _, port := range []*int{&p.etcd, &p.etcdPeer, &p.apiServer, &p.controllerManager, &p.scheduler, &p.kwok} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return ports{}, errors.Join(fmt.Errorf("find a free port on 127.0.0.1: %w", err), closeAll(held))
		}
		// All are held until the last is found, so that no two are the same.
		held = append(held, listener)
		*port = listener.Addr().(*net.TCPAddr).Port
	}
	return p, closeAll(held)
}

func closeAll(listeners []net.Listener) error {
	var errs []error
	for _, listener := range listeners {
		errs = append(errs, listener.Close())
	}
	return errors.Join(errs...)
}

func hostPort(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
