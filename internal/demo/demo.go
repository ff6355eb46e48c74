// Package demo is the main job of Tenon as a show: it starts a lab and the controller, makes pods appear, shows the
// nodes that come for them and, once the pods are gone, shows the nodes go. With a simulated AWS account (sky_aws.go)
// the cloud takes a node back in between.
//
// It stands beside the floors: only the command line uses it. It touches one directory, the lab, the account and the
// controller that it starts, and the terminal. What it runs is the real program and what it applies are the files of
// examples.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tenon-sh/tenon/internal/lab/labaws"
)

// MaxPods is how many pods the limit of the example's NodePool has room for, whatever types are chosen.
const MaxPods = 500

// Options say how the demo runs.
type Options struct {
	// Dir is the demo's own directory: the lab, and the controller's log.
	Dir string
	// AWS shows the controller with a simulated AWS account instead of its own simulated cloud.
	AWS bool
	// Pods is how many pods inflate is scaled to.
	Pods int
	// Keep leaves everything running.
	Keep bool
	// Executable is the program whose "controller" subcommand runs.
	Executable string
	// Out gets the show.
	Out io.Writer
}

// patience says how long a step may take before the demo gives up. They are an order of magnitude above what a slow
// machine needs.
const (
	labPatience        = 30 * time.Minute // the first start builds Kubernetes
	installPatience    = time.Minute
	controllerPatience = time.Minute
	podsPatience       = 3 * time.Minute
	emptyPatience      = 3 * time.Minute
	endPatience        = time.Minute
)

// breath is the least time between two looks at the cluster.
const breath = 20 * time.Millisecond

// Run is the whole show. However it ends, no process is left behind, unless it succeeds and is to be kept. The
// directory stays only if there is something in it to read: after a failure, and when the demo is kept.
func Run(ctx context.Context, o Options) error {
	if o.Pods < 1 || o.Pods > MaxPods {
		return fmt.Errorf("--pods: %d is out of range; use 1 to %d", o.Pods, MaxPods)
	}
	silenceLibraries()
	dir, err := openDirectory(ctx, o.Dir, o.Out)
	if err != nil {
		return err
	}
	s := &show{Options: o, dir: dir, screen: newScreen(o.Out), sky: kwokSky{}}
	if o.AWS {
		s.sky = &awsSky{executable: o.Executable, dir: dir.lab(), keep: o.Keep}
	}
	err = s.run(ctx)
	if err == nil && o.Keep {
		return dir.letGo()
	}
	// The context may be over, but what was started must end all the same.
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endPatience)
	defer cancel()
	err = errors.Join(err, s.end())
	if ctx.Err() != nil {
		fmt.Fprintf(o.Out, "\n%s: interrupted; everything that it started has ended\n", s.sky.name())
		return errors.Join(context.Cause(ctx), dir.remove(end, o.Out))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", s.sky.name(), err), dir.letGo())
	}
	if err := dir.remove(end, o.Out); err != nil {
		return fmt.Errorf("%s: %w", s.sky.name(), err)
	}
	fmt.Fprintln(o.Out, s.verdict)
	return nil
}

// show is one run of the demo.
type show struct {
	Options
	dir        *directory
	screen     *screen
	sky        sky
	plane      plane
	controller *controller
	world      *world
	stopWorld  context.CancelFunc
	verdict    string
}

func (s *show) run(ctx context.Context) error {
	if err := s.prepare(ctx); err != nil {
		return err
	}
	s.screen.title("scaling deployment inflate to %d pods of 1 CPU", s.Pods)
	begin := time.Now()
	if err := s.world.scale(ctx, s.Pods); err != nil {
		return err
	}
	allRun := func(v view) bool { return v.Running == s.Pods }
	peak, took, err := s.watch(ctx, begin, allRun, podsPatience)
	if err != nil {
		return fmt.Errorf("waiting for %d pods to run (%d do): %w", s.Pods, peak.Running, err)
	}
	s.screen.linger(ctx)
	if s.Keep {
		s.explain(peak, took)
		return nil
	}
	suffix := fmt.Sprintf(" in %.1f s", took.Seconds())
	if account, ok := s.sky.(*awsSky); ok {
		n, err := s.interruption(ctx, account, peak)
		if err != nil {
			return err
		}
		suffix = fmt.Sprintf("; %d spot interruption survived", n)
	}
	s.screen.title("deleting deployment inflate")
	begin = time.Now()
	if err := s.world.deleteInflate(ctx); err != nil {
		return err
	}
	noneLeft := func(v view) bool { return v.Pods == 0 && v.Nodes() == 0 }
	if _, _, err := s.watch(ctx, begin, noneLeft, emptyPatience); err != nil {
		return fmt.Errorf("waiting for the nodes to go: %w", errors.Join(err, s.countLeft(ctx)))
	}
	if err := s.countLeft(ctx); err != nil {
		return err
	}
	s.verdict = fmt.Sprintf("%s: %d pods ran on %d nodes ($%.4f/h)%s; 0 nodes left", s.sky.name(), peak.Running,
		peak.Nodes(), peak.Price(), suffix)
	return nil
}

// prepare brings everything up to the point where pods can come.
func (s *show) prepare(ctx context.Context) (err error) {
	s.screen.title("starting a Kubernetes control plane in %s", relative(s.dir.lab()))
	if s.plane, err = startPlane(ctx, s.dir, s.Keep, s.screen.indented()); err != nil {
		return err
	}
	if s.world, err = newWorld(s.plane.kubeconfig(), s.sky); err != nil {
		return err
	}
	if s.AWS {
		s.screen.title("starting a simulated AWS account")
	}
	if err := s.sky.begin(ctx); err != nil {
		return err
	}
	s.screen.title("installing the CustomResourceDefinitions and starting the controller (log: %s)",
		relative(s.dir.controllerLog()))
	if err := s.world.install(ctx); err != nil {
		return err
	}
	if s.controller, err = startController(s.Options, s.dir, s.plane.kubeconfig(), s.sky.environment()); err != nil {
		return err
	}
	s.screen.title("the controller's metrics: %s", s.controller.metrics)
	_, words := s.sky.examples()
	s.screen.title("applying %s", words)
	if err := s.applyExamples(ctx); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	s.stopWorld = stop
	return s.world.watch(watching)
}

// applyExamples returns when the controller has found the pool to be in order.
func (s *show) applyExamples(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, controllerPatience)
	defer cancel()
	if err := s.world.applyExamples(ctx); err != nil {
		return err
	}
	return poll(ctx, "waiting for the controller to find the NodePool ready", func() (bool, error) {
		if err := s.trouble(); err != nil {
			return false, err
		}
		return s.world.poolReady(ctx)
	})
}

// watch shows the world until it is as wanted, and returns how it is then and how long that took.
func (s *show) watch(ctx context.Context, begin time.Time, wanted func(view) bool, patience time.Duration) (view,
	time.Duration, error) {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	for {
		v, err := s.world.look(ctx)
		if err != nil {
			return v, 0, err
		}
		took := time.Since(begin)
		done := wanted(v)
		s.screen.draw(v, s.Pods, took, done)
		if done {
			return v, took, nil
		}
		if err := s.trouble(); err != nil {
			return v, took, err
		}
		select {
		case <-ctx.Done():
			return v, took, context.Cause(ctx)
		case <-deadline.C:
			return v, took, fmt.Errorf("gave up after %s; see %s", patience, relative(s.dir.controllerLog()))
		case <-s.world.changed:
			// What comes right after shares one look.
			select {
			case <-ctx.Done():
			case <-time.After(breath):
			}
		case <-tick.C:
		}
	}
}

// trouble tells whether something that should run has ended.
func (s *show) trouble() error {
	select {
	case err := <-s.controller.ended:
		s.controller.ended <- err // for the next who asks
		return fmt.Errorf("the controller ended (%w); see %s", err, relative(s.dir.controllerLog()))
	case <-s.plane.done():
		return fmt.Errorf("the lab ended; see %s", filepath.Join(s.dir.lab(), "logs"))
	default:
		return s.sky.ended()
	}
}

// countLeft asks the API server and the cloud themselves whether anything is left.
func (s *show) countLeft(ctx context.Context) error {
	left, err := s.world.left(ctx)
	if err != nil {
		return err
	}
	if left.any() {
		return fmt.Errorf("%s are left; see %s", left, relative(s.dir.controllerLog()))
	}
	return nil
}

// end ends what runs, the latest first.
func (s *show) end() error {
	var errs []error
	if s.stopWorld != nil {
		s.stopWorld()
		s.world.stopped.Wait()
	}
	if s.controller != nil {
		errs = append(errs, s.controller.end())
	}
	errs = append(errs, s.sky.end())
	if s.plane != nil {
		errs = append(errs, s.plane.end())
	}
	return errors.Join(errs...)
}

// explain says how to go on with a demo that is kept.
func (s *show) explain(peak view, took time.Duration) {
	lab := relative(s.dir.lab())
	fmt.Fprintf(s.Out, `
%[10]s: %[1]d pods run on %[2]d nodes ($%.4[3]f/h) after %.1[4]f s; all of it is left running

  Look at it      export KUBECONFIG=%[5]s
                  %[6]s lab kubectl --dir %[7]s -- get nodepools,nodeclaims,nodes
  Change it       %[6]s lab kubectl --dir %[7]s -- scale deployment inflate --replicas 10
  The controller  tail -f %[8]s
  Its metrics     curl %[11]s
  End it          %[6]s demo --down --dir %[9]s
`, peak.Running, peak.Nodes(), peak.Price(), took.Seconds(), s.plane.kubeconfig(),
		relative(s.Executable), lab, relative(s.dir.controllerLog()), relative(s.dir.path), s.sky.name(),
		s.controller.metrics)
	if s.AWS {
		fmt.Fprintf(s.Out, "  The cloud       . %s; %s ec2sim interrupt --spot --dir %s\n",
			relative(labaws.EnvPath(s.dir.lab())), relative(s.Executable), lab)
	}
}

// silenceLibraries keeps the client libraries' own logs out of the show; the controller logs to its file.
func silenceLibraries() {
	crlog.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
}

// relative shortens a path for people, if it is below the working directory.
func relative(path string) string {
	working, err := os.Getwd()
	if err != nil {
		return path
	}
	short, err := filepath.Rel(working, path)
	if err != nil || !filepath.IsLocal(short) {
		return path
	}
	return short
}

// poll asks often until done, an error, or the end of ctx.
func poll(ctx context.Context, doing string, done func() (bool, error)) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		ok, err := done()
		if err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}
