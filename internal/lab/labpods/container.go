package labpods

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// imageName is the last word of the images that stand for the executable.
const imageName = "tenon"

// container is a container of a pod: a process that is started again when it ends, or a simulated one.
type container struct {
	p        *pod
	spec     *corev1.Container
	executes bool

	mu       sync.Mutex
	state    corev1.ContainerState
	last     corev1.ContainerState
	restarts int32
	ready    bool
}

func newContainer(p *pod, spec *corev1.Container) *container {
	c := &container{p: p, spec: spec, executes: isTenon(spec.Image)}
	c.state.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	return c
}

// isTenon reports whether an image is Tenon's: any registry, any tag.
func isTenon(image string) bool {
	image, _, _ = strings.Cut(image, "@")
	image = image[strings.LastIndex(image, "/")+1:]
	image, _, _ = strings.Cut(image, ":")
	return image == imageName
}

// Between two starts of a process that ends again and again.
const (
	firstBackoff   = 500 * time.Millisecond
	longestBackoff = 10 * time.Second
	// settled is how long a process must have run to be started at once again.
	settled = 30 * time.Second
)

// run keeps the container running until its pod ends.
func (c *container) run() {
	if !c.executes {
		c.runs(true)
		<-c.p.ctx.Done()
		return
	}
	backoff := firstBackoff
	for {
		began := time.Now()
		err := c.once()
		if c.p.ctx.Err() != nil {
			return
		}
		if time.Since(began) > settled {
			backoff = firstBackoff
		}
		c.waits("CrashLoopBackOff", fmt.Sprintf("back-off %s restarting the process: %v", backoff, err))
		if !c.p.pause(backoff) {
			return
		}
		backoff = min(2*backoff, longestBackoff)
	}
}

// once runs the process to its end.
func (c *container) once() error {
	cmd, err := c.command()
	if err != nil {
		return err
	}
	out, err := openLog(c.logPath())
	if err != nil {
		return err
	}
	defer out.close()
	cmd.Stdout, cmd.Stderr = out, out
	ended, err := c.launch(cmd)
	if err != nil {
		return fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	began := metav1.Now()
	c.runs(c.spec.ReadinessProbe == nil)
	sick := make(chan struct{})
	probes := c.probe(sick, ended)
	select {
	case <-ended:
	case <-sick:
		c.stop(cmd, ended)
	case <-c.p.ctx.Done():
		c.stop(cmd, ended)
	}
	probes.Wait()
	c.ended(cmd, began)
	return fmt.Errorf("%s", cmd.ProcessState)
}

// command is the process that the container stands for. Only the controller is run: whoever may create pods must not
// thereby run other things on this machine.
func (c *container) command() (*exec.Cmd, error) {
	args := c.spec.Args
	if len(c.spec.Command) > 0 {
		if filepath.Base(c.spec.Command[0]) != imageName {
			return nil, fmt.Errorf("the lab does not run the command %s; it runs %s's own",
				c.spec.Command[0], imageName)
		}
		args = append(c.spec.Command[1:len(c.spec.Command):len(c.spec.Command)], args...)
	}
	if len(args) > 0 && args[0] != "controller" {
		return nil, fmt.Errorf("the lab does not run %s %s; it runs the controller", imageName, args[0])
	}
	var own []string
	for _, arg := range args {
		own = append(own, c.p.hostPath(c.spec, arg))
	}
	env, err := c.p.environment(c.p.ctx, c.spec)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(c.p.r.o.Executable, own...)
	cmd.Env, cmd.Dir = env, "/"
	cmd.SysProcAttr = withUs()
	cmd.WaitDelay = time.Second
	return cmd, nil
}

// stop asks the process to end, and kills it when the time of its pod is up. A process that is to be started again has
// as long as a pod.
func (c *container) stop(cmd *exec.Cmd, ended <-chan struct{}) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	patience := 30 * time.Second
	if s := c.p.object.Spec.TerminationGracePeriodSeconds; s != nil {
		patience = time.Duration(*s) * time.Second
	}
	select {
	case <-ended:
		return
	case <-c.p.kill:
	case <-time.After(patience):
	}
	_ = cmd.Process.Kill()
	<-ended
}

// runs notes that the container runs.
func (c *container) runs(ready bool) {
	c.mu.Lock()
	now := metav1.Now()
	c.state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	c.ready = ready
	c.mu.Unlock()
	c.p.changed()
}

// waits notes why the container does not run.
func (c *container) waits(reason, message string) {
	c.mu.Lock()
	c.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	c.ready = false
	c.mu.Unlock()
	c.p.changed()
}

// ended notes how the process ended.
func (c *container) ended(cmd *exec.Cmd, began metav1.Time) {
	code := cmd.ProcessState.ExitCode()
	reason := "Error"
	if code == 0 {
		reason = "Completed"
	}
	how := &corev1.ContainerStateTerminated{ExitCode: int32(code), Reason: reason, StartedAt: began,
		FinishedAt: metav1.Now(), Message: lastLine(c.logPath())}
	c.mu.Lock()
	c.state, c.last = corev1.ContainerState{Terminated: how}, corev1.ContainerState{Terminated: how}
	c.restarts++
	c.ready = false
	c.mu.Unlock()
	c.p.changed()
}

func (c *container) logPath() string { return c.p.path(c.spec.Name + ".log") }
