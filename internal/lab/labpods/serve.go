package labpods

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/tenon-sh/tenon/internal/lab"
)

// labWatch is how often is looked whether the lab is still there.
const labWatch = 500 * time.Millisecond

// recordPath is the file that tells of a runner. Its lock is held as long as it runs; the kernel drops it with the
// process.
func recordPath(dir string) string { return filepath.Join(dir, "system.pid") }

// LogPath is the log of a runner in the background.
func LogPath(dir string) string { return filepath.Join(dir, "logs", "system.log") }

// Serve runs the pods of the system nodes of the lab in dir until the context ends or the lab does. ready is called
// once the nodes are there. Of the options it needs what to execute, and the zones.
func Serve(ctx context.Context, dir string, o Options, ready func()) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("resolving --dir: %w", err)
	}
	if runs, err := lab.Runs(dir); err != nil || !runs {
		return errors.Join(err, fmt.Errorf("no lab runs in %s: start one with: tenon lab up --dir %s", dir, dir))
	}
	record, err := hold(dir)
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(record.Truncate(0), record.Close()) }()
	if o.Config, err = clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig")); err != nil {
		return fmt.Errorf("reading the lab's kubeconfig: %w", err)
	}
	o.Config.QPS = -1
	o.Dir = filepath.Join(dir, "pods")
	r, err := Start(ctx, o)
	if err != nil {
		return err
	}
	if _, err := record.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return errors.Join(fmt.Errorf("writing the record of the system nodes: %w", err), r.Close())
	}
	ready()
	watch := time.NewTicker(labWatch)
	defer watch.Stop()
	for {
		select {
		case <-ctx.Done():
			return r.Close()
		case <-watch.C:
			if runs, err := lab.Runs(dir); err == nil && !runs {
				return r.Close()
			}
		}
	}
}

// hold makes this process the one that runs the pods of the lab in dir.
func hold(dir string) (*os.File, error) {
	file, err := os.OpenFile(recordPath(dir), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the record of the system nodes: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = fmt.Errorf("the lab in %s already has system nodes", dir)
		}
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Running is the process that runs the pods of the lab in dir; 0 if none does, or it is not ready yet.
func Running(dir string) (int, error) {
	file, err := os.Open(recordPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("opening the record of the system nodes: %w", err)
	}
	defer func() { _ = file.Close() }()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) {
		return 0, err
	}
	content, err := os.ReadFile(recordPath(dir))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(content))) // it may just be being written
	return pid, err
}

// patience is how long a runner may take to begin or to end.
const patience = time.Minute

// Down ends the pods of the lab in dir, if any run, and waits until they are gone.
func Down(ctx context.Context, dir string) error {
	return await(ctx, "the pods of the system nodes did not end", func() (bool, error) {
		pid, err := Running(dir)
		if err != nil || pid == 0 {
			return true, err
		}
		// That the record is locked proves that the number in it still is that process's.
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			return true, fmt.Errorf("ending the pods of the system nodes (pid %d): %w", pid, err)
		}
		return false, nil
	})
}

// Await returns when the system nodes of the lab in dir are there. ended tells that the process that makes them has
// ended.
func Await(ctx context.Context, dir string, ended <-chan error) error {
	return await(ctx, "there are no system nodes yet; see "+LogPath(dir), func() (bool, error) {
		select {
		case err := <-ended:
			return true, fmt.Errorf("the system nodes were not made (%w); see %s", err, LogPath(dir))
		default:
		}
		pid, err := Running(dir)
		return pid != 0, err
	})
}

func await(ctx context.Context, late string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if ok, err := done(); err != nil || ok {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", late, context.Cause(ctx))
		case <-time.After(50 * time.Millisecond):
		}
	}
}
