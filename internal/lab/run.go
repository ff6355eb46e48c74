package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Exec replaces this process by the lab's executable with the given arguments,
// so that the terminal, the signals and the exit code are the lab's own.
func Exec(ctx context.Context, args []string, progress io.Writer) error {
	binary, err := Binary(ctx, progress)
	if err != nil {
		return err
	}
	if err := syscall.Exec(binary, append([]string{binary}, args...), os.Environ()); err != nil {
		return fmt.Errorf("run the lab: %w", err)
	}
	return nil
}

// Restart kills parts of the lab in dir, as a crash would, and returns when they are back with the same ports and data.
func Restart(ctx context.Context, dir string, parts ...string) error {
	binary, err := Binary(ctx, io.Discard)
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, binary, append([]string{"restart", "--dir=" + dir}, parts...)...).
		CombinedOutput()
	if err != nil {
		return fmt.Errorf("restart %s of the lab: %w: %s", strings.Join(parts, ", "), err,
			strings.TrimSpace(string(out)))
	}
	return nil
}

// Lab is a running lab that ends with this process, however this process ends.
type Lab struct {
	dir  string
	cmd  *exec.Cmd
	hold io.Closer
	done chan struct{}
}

// endPatience bounds Close; a lab ends in about a second.
const endPatience = 20 * time.Second

// Start runs a lab in dir and returns when it is ready. Progress lines go to
// out. The lab ends with Close, or when this process dies.
func Start(ctx context.Context, dir string, out io.Writer) (*Lab, error) {
	return start(ctx, dir, out)
}

// StartTemporary is Start in a new directory that goes when the lab ends, also
// when this process is killed.
func StartTemporary(ctx context.Context, out io.Writer) (*Lab, error) {
	dir, err := os.MkdirTemp("", "tenon-lab-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the lab: %w", err)
	}
	l, err := start(ctx, dir, out, "--delete-at-end")
	if err != nil {
		_ = os.RemoveAll(dir)
	}
	return l, err
}

func start(ctx context.Context, dir string, out io.Writer, flags ...string) (*Lab, error) {
	binary, err := Binary(ctx, out)
	if err != nil {
		return nil, err
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("resolve the lab's directory: %w", err)
	}
	report, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe for the lab's report: %w", err)
	}
	defer func() { _ = report.Close() }()
	cmd := exec.Command(binary, append([]string{"up", "--dir=" + absolute, "--until-stdin-closes", "--report-fd=3"},
		flags...)...)
	cmd.ExtraFiles = []*os.File{write}
	// Ctrl-C is this process's to handle; the lab follows when stdin closes.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	hold, err := cmd.StdinPipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a pipe for the lab: %w", err), write.Close())
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the lab: %w", err), write.Close(), hold.Close())
	}
	_ = write.Close()
	l := &Lab{dir: absolute, cmd: cmd, hold: hold, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(l.done)
	}()
	stop := context.AfterFunc(ctx, func() { _ = hold.Close() })
	if err := follow(report, out); err != nil {
		stop()
		return nil, errors.Join(err, l.Close())
	}
	if !stop() {
		return nil, errors.Join(fmt.Errorf("start the lab: %w", context.Cause(ctx)), l.Close())
	}
	return l, nil
}

// Kubeconfig is the path of the administrator's kubeconfig.
func (l *Lab) Kubeconfig() string { return filepath.Join(l.dir, "kubeconfig") }

// Dir is the lab's directory.
func (l *Lab) Dir() string { return l.dir }

// Done is closed when the lab has ended, wanted or not.
func (l *Lab) Done() <-chan struct{} { return l.done }

// Close ends the lab and waits until all its processes are gone. The directory
// stays. Closing twice is harmless.
func (l *Lab) Close() error {
	_ = l.hold.Close()
	select {
	case <-l.done:
		return nil
	case <-time.After(endPatience):
	}
	_ = l.cmd.Process.Kill()
	<-l.done
	return fmt.Errorf("the lab in %s did not end in %s and was killed", l.dir, endPatience)
}

// follow reads the lab's report, a word and a text on each line, until the lab
// is ready or has failed.
func follow(report io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(report)
	for lines.Scan() {
		word, text, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "progress":
			fmt.Fprintln(out, "lab:", text)
		case "ready":
			fmt.Fprintln(out, text)
			return nil
		case "error":
			return errors.New(text)
		}
	}
	return errors.Join(errors.New("the lab ended before it was ready"), lines.Err())
}

// Runs tells whether a lab runs in dir: its supervisor holds the directory's lock.
func Runs(dir string) (bool, error) {
	file, err := os.Open(filepath.Join(dir, "lock"))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open the lab's lock: %w", err)
	}
	defer func() { _ = file.Close() }()
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("test the lab's lock: %w", err)
	}
	return false, nil
}
