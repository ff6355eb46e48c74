package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// grace is how long a process may take to end before it is killed.
const grace = 10 * time.Second

// Spec says what to run.
type Spec struct {
	// Name is for people.
	Name    string
	Command []string
	// Env is added to the few variables that every program needs.
	Env []string
	// Log is the file that takes what the process writes.
	Log string
	// ReadyPort is the loopback port that answers /readyz, MetricsPort the one of metrics and profiles.
	ReadyPort, MetricsPort int
}

// Process is a running child.
type Process struct {
	spec Spec
	cmd  *exec.Cmd
	// ended is closed once the process is gone; failure says how then.
	ended   chan struct{}
	failure error
}

// Start runs a process. The kernel ends it if this program dies without a word.
func Start(spec Spec) (*Process, error) {
	log, err := os.Create(spec.Log)
	if err != nil {
		return nil, fmt.Errorf("make the log of %s: %w", spec.Name, err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(spec.Command[0], spec.Command[1:]...)
	cmd.Env = append(bareEnvironment(), spec.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	// Its own group, so that Ctrl-C reaches this program only, which then ends it in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	p := &Process{spec: spec, cmd: cmd, ended: make(chan struct{})}
	go func() {
		p.failure = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// bareEnvironment keeps settings of the user from reaching one contestant and not the other.
func bareEnvironment() []string {
	var out []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			out = append(out, name+"="+value)
		}
	}
	return out
}

// AwaitReady asks until the process says that it is ready.
func (p *Process) AwaitReady(ctx context.Context) error {
	url := fmt.Sprintf("http://127.0.0.1:%d/readyz", p.spec.ReadyPort)
	client := &http.Client{Timeout: 2 * time.Second}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return fmt.Errorf("ask whether %s is ready: %w", p.spec.Name, err)
		}
		if answer, err := client.Do(request); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-p.ended:
			return p.Failure()
		case <-ctx.Done():
			return fmt.Errorf("wait until %s is ready: %w%s", p.spec.Name, context.Cause(ctx), p.lastWords())
		}
	}
}

// Ended is closed when the process is gone, whoever ended it.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Failure says how a process that ended by itself came to its end.
func (p *Process) Failure() error {
	how := "exit status 0"
	if p.failure != nil {
		how = p.failure.Error()
	}
	return fmt.Errorf("%s ended by itself (%s)%s", p.spec.Name, how, p.lastWords())
}

// lastWords is the end of the log, as a part of a sentence.
func (p *Process) lastWords() string {
	content, err := os.ReadFile(p.spec.Log)
	if err != nil {
		return ""
	}
	return lastLine(content)
}

func lastLine(content []byte) string {
	lines := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	line := strings.TrimSpace(string(lines[len(lines)-1]))
	if line == "" {
		return ""
	}
	const enough = 300
	if len(line) > enough {
		line = line[:enough] + "..."
	}
	return ": " + line
}

// Usage is what the process has used so far.
func (p *Process) Usage() (Usage, error) {
	select {
	case <-p.ended:
		return Usage{}, p.Failure()
	default:
		return usageOf(p.cmd.Process.Pid)
	}
}

// Stop ends the process and waits until it is gone.
func (p *Process) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end %s: %w", p.spec.Name, err)
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(grace):
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.spec.Name, err)
	}
	<-p.ended
	return nil
}

// FreePorts finds ports of the loopback interface that nobody listens on.
func FreePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		// All stay open until the last is found, so that they differ.
		defer func() { _ = listener.Close() }()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// Executable makes a path absolute and checks that it can be run.
func Executable(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("%s is not an executable file", path)
	}
	return filepath.Abs(path)
}
