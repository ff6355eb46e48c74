package lab

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	mainPackage      = "./cmd/tenon-lab"
	progressInterval = 10 * time.Second
	lockPoll         = 100 * time.Millisecond
)

// build compiles the lab into the cache. Of two builders one waits and finds
// the other's work.
func (c cache) build(ctx context.Context, key string, tool toolchain, progress io.Writer) (string, error) {
	unlock, err := c.lock(ctx, progress)
	if err != nil {
		return "", err
	}
	defer unlock()
	if path, ok := c.lookup(key); ok {
		return path, nil
	}
	folder, err := os.MkdirTemp(c.folder, ".building-*")
	if err != nil {
		return "", fmt.Errorf("make a folder for the build: %w", explainFull(err, c.folder))
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if err := compile(ctx, tool, filepath.Join(folder, executableName), progress); err != nil {
		return "", explainFull(err, c.folder)
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		return "", fmt.Errorf("open the built lab to readers: %w", err)
	}
	if err := os.Rename(folder, filepath.Dir(c.path(key))); err != nil {
		return "", fmt.Errorf("keep the built lab: %w", err)
	}
	if err := c.prune(); err != nil {
		return "", err
	}
	return c.path(key), nil
}

func compile(ctx context.Context, tool toolchain, output string, progress io.Writer) error {
	begin := time.Now()
	fmt.Fprintln(progress, "lab: building the control plane (once; some minutes): looking at modules")
	total, err := countPackages(ctx, tool)
	if err != nil {
		return err
	}
	args := append(append([]string{"build", "-v", "-o", output}, buildFlags()...), mainPackage)
	cmd := tool.run(ctx, args...)
	// A compiler that has been told to stop may hold the pipe a little longer.
	cmd.WaitDelay = 5 * time.Second
	read, write := io.Pipe()
	cmd.Stdout = write
	cmd.Stderr = write
	built := &counter{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		built.read(read)
	}()
	stop := announce(progress, built, total, begin)
	err = cmd.Run()
	_ = write.Close()
	<-done
	stop()
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("build the lab: %w", context.Cause(ctx))
		}
		return fmt.Errorf("build the lab: %w: %s", err, built.complaint())
	}
	fmt.Fprintf(progress, "lab: built in %.0f s\n", time.Since(begin).Seconds())
	return nil
}

// countPackages returns how many packages a build from nothing compiles; it
// also downloads the modules.
func countPackages(ctx context.Context, tool toolchain) (int, error) {
	output, err := tool.run(ctx, "list", "-mod=readonly", "-deps", mainPackage).Output()
	if err != nil {
		return 0, fmt.Errorf("download the modules of the lab: %w", describeExit(err))
	}
	return bytes.Count(output, []byte("\n")), nil
}

// announce tells progress every few seconds how far the build is, until the
// returned function is called.
func announce(progress io.Writer, built *counter, total int, begin time.Time) (stop func()) {
	ticker := time.NewTicker(progressInterval)
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for {
			select {
			case <-quit:
				return
			case <-ticker.C:
				fmt.Fprintf(progress, "lab: building: %d of up to %d packages, %.0f s\n",
					built.packages.Load(), total, time.Since(begin).Seconds())
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(quit)
		<-gone
	}
}

// counter follows the output of go build -v, which prints a package when it
// compiles it and complaints as they are.
type counter struct {
	packages atomic.Int64
	other    []string
}

func (c *counter) read(output io.Reader) {
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if line != "" && !strings.ContainsAny(line, " \t:") {
			c.packages.Add(1)
			continue
		}
		c.other = append(c.other, strings.TrimSpace(line))
	}
	// Never leave the compiler blocked on a pipe that nobody reads.
	_, _ = io.Copy(io.Discard, output)
}

// complaint is the line that explains a failed build best.
func (c *counter) complaint() string {
	for _, line := range c.other {
		if strings.Contains(line, "no space left on device") {
			return line
		}
	}
	for _, line := range c.other {
		if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "go: downloading") && line != "" {
			return line
		}
	}
	return "no reason given"
}

func explainFull(err error, folder string) error {
	if errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "no space left on device") {
		return fmt.Errorf("no room to build the lab (about 3 GB in the Go caches and %s): free some space, or set "+
			"GOCACHE, GOTMPDIR and XDG_CACHE_HOME to another disk", folder)
	}
	return err
}

// lock takes the build lock of the cache; the kernel drops it if this process dies.
func (c cache) lock(ctx context.Context, progress io.Writer) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(c.folder, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the build cache: %w", explainFull(err, c.folder))
	}
	told := false
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock the build cache: %w", err), file.Close())
		}
		if !told {
			fmt.Fprintln(progress, "lab: another process builds the control plane: waiting for it")
			told = true
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for the other build: %w", context.Cause(ctx)), file.Close())
		case <-time.After(lockPoll):
		}
	}
}
