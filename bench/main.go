// Command bench gives the same work to Tenon and to its peer Karpenter, one after the other, each on a fresh lab of the
// same kind on this machine, and compares. The comparison is one line on standard output; progress goes to standard
// error, and every single run to a JSON file.
//
// It starts labs and controllers through the tenon command and the peer's executable, and ends all of them, also after
// Ctrl-C. Nothing of the product is linked: what is measured are the programs that users run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/tenon-sh/tenon/bench/internal/catalog"
	"github.com/tenon-sh/tenon/bench/internal/cluster"
	"github.com/tenon-sh/tenon/bench/internal/contestant"
	"github.com/tenon-sh/tenon/bench/internal/process"
	"github.com/tenon-sh/tenon/bench/internal/report"
)

const (
	outputFolder = "out"
	peerPin      = "peer"
)

// tenonCRDs is where the repository keeps Tenon's definitions, seen from this folder.
func tenonCRDs() string { return filepath.Join("..", "charts", "karpenter-crd", "templates") }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, context.Canceled) && !errors.Is(err, cluster.ErrStillUp):
		fmt.Fprintln(os.Stderr, "bench: interrupted; everything that was started has been ended")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench: "+strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	tenon    string
	count    int
	pods     int
	only     string
	floor    bool
	keepLogs string
	logLevel string
}

func parse(args []string, messages io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.tenon, "tenon", filepath.Join("..", "bin", "tenon"), "path of the tenon executable")
	f.IntVar(&o.count, "count", 3, "how many times each contestant does the work; the line gives medians")
	f.IntVar(&o.pods, "pods", 500, "how many pods of 1 CPU to run")
	f.StringVar(&o.only, "only", "", "run only this contestant: tenon or peer")
	f.BoolVar(&o.floor, "floor", false, "also run the work on ready-made nodes without an autoscaler, which is as fast as the lab can be")
	f.StringVar(&o.keepLogs, "keep-logs", "", "folder that keeps the controllers' logs")
	f.StringVar(&o.logLevel, "log-level", "info", "log level of the controllers: debug, info or error")
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		f.SetOutput(messages)
		f.PrintDefaults()
		return o, err
	}
	if err != nil {
		return o, fmt.Errorf("%w (see -help)", err)
	}
	return o, o.validate(f.Args())
}

func (o options) validate(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("%q is not a flag; see -help", rest[0])
	case o.count < 1:
		return fmt.Errorf("-count: %d is too few; use 1 or more", o.count)
	case o.pods < 1 || o.pods > 5000:
		return fmt.Errorf("-pods: %d is out of range; use 1 to 5000", o.pods)
	case o.only != "" && o.only != report.Tenon && o.only != report.Peer:
		return fmt.Errorf("-only: %q is neither %s nor %s", o.only, report.Tenon, report.Peer)
	case o.logLevel != "debug" && o.logLevel != "info" && o.logLevel != "error":
		return fmt.Errorf("-log-level: %q is not one of debug, info, error", o.logLevel)
	}
	return nil
}

func run(ctx context.Context, args []string, out, messages io.Writer) error {
	o, err := parse(args, messages)
	if err != nil {
		return err
	}
	r := &runner{options: o, messages: messages}
	if r.tenon, err = process.Executable(o.tenon); err != nil {
		return fmt.Errorf("-tenon: %w; build it with make build", err)
	}
	contestants, err := r.prepare(ctx)
	if err != nil {
		return err
	}
	work := &report.Workload{Scenario: fmt.Sprintf("pods-%d", o.pods), Pods: o.pods}
	if err := r.all(ctx, contestants, work); err != nil {
		return err
	}
	if err := report.WriteJSON(filepath.Join(outputFolder, "peer-lab.json"), work); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, work.Line())
	return err
}

// prepare fetches the peer, whose instance types every run needs, and builds it if it takes part.
func (r *runner) prepare(ctx context.Context) ([]contestant.Contestant, error) {
	module, err := contestant.FindPeer(ctx, peerPin)
	if err != nil {
		return nil, err
	}
	if r.prices, err = catalog.Load(module.InstanceTypes()); err != nil {
		return nil, err
	}
	var out []contestant.Contestant
	if r.options.only != report.Peer {
		tenon, err := contestant.Tenon(r.tenon, tenonCRDs(), module.InstanceTypes())
		if err != nil {
			return nil, err
		}
		out = append(out, tenon)
	}
	if r.options.only != report.Tenon {
		fmt.Fprintf(r.messages, "bench: building the peer, Karpenter %s (minutes the first time)\n", module.Version)
		binary, err := filepath.Abs(filepath.Join(outputFolder, "karpenter-kwok"))
		if err != nil {
			return nil, fmt.Errorf("find the place for the peer's executable: %w", err)
		}
		if err := module.Build(ctx, binary, r.messages); err != nil {
			return nil, err
		}
		out = append(out, contestant.Peer(binary, module))
	}
	return out, nil
}
