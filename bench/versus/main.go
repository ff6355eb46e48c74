// Command versus gives the same pods, pools and catalog to Tenon's engine and to the scheduler of its peer Karpenter,
// in one process and cold each time, and compares time, memory, nodes and price. One line for each workload and one for
// each promise go to standard output, progress to standard error, and all of it to a JSON file.
//
// It is a module of its own because the peer asks for a newer compiler than the rest of the repository.
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
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"github.com/tenon-sh/tenon/bench/internal/contest"
	"github.com/tenon-sh/tenon/bench/internal/ours"
	"github.com/tenon-sh/tenon/bench/internal/workload"
	"github.com/tenon-sh/tenon/bench/versus/internal/karpenter"
)

const peerModule = "sigs.k8s.io/karpenter"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "bench: interrupted")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench: "+strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	only                string
	count               int
	small               int
	cut                 time.Duration
	tenonOnly, peerOnly bool
	profile             string
	out                 string
}

func parse(args []string, messages io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("versus", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.only, "only", "", "run only the workloads whose names match this regular expression")
	f.IntVar(&o.count, "count", 3, "how many times each contestant does a small workload; the median counts")
	f.IntVar(&o.small, "small", 3000, "up to how many pods a workload is small; larger ones are run once")
	f.DurationVar(&o.cut, "cut", 5*time.Minute, "how long a run may take before it is cut off")
	f.BoolVar(&o.tenonOnly, "tenon-only", false, "leave the peer out")
	f.BoolVar(&o.peerOnly, "peer-only", false, "leave Tenon out")
	f.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile to this file")
	f.StringVar(&o.out, "out", filepath.Join("..", "out", "peer.json"), "file that gets all figures")
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		f.SetOutput(messages)
		f.PrintDefaults()
		return o, err
	}
	if err != nil {
		return o, fmt.Errorf("%w (see -help)", err)
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("%q is not a flag; see -help", f.Arg(0))
	case o.count < 1:
		return o, fmt.Errorf("-count: %d is too few; use 1 or more", o.count)
	case o.cut <= 0:
		return o, fmt.Errorf("-cut: %s is too short; use a time such as 5m", o.cut)
	case o.tenonOnly && o.peerOnly:
		return o, errors.New("-tenon-only and -peer-only leave nobody; use one of them")
	}
	return o, nil
}

func run(ctx context.Context, args []string, out, messages io.Writer) (err error) {
	o, err := parse(args, messages)
	if err != nil {
		return err
	}
	kinds, err := workload.Select(o.only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	c := &contest.Contest{Lines: out, Messages: messages, Settings: contest.Settings{Cut: o.cut, Count: o.count,
		SmallPods: o.small}}
	if !o.peerOnly {
		c.Tenon = ours.Solver{}
	}
	if !o.tenonOnly {
		if c.Peer, err = karpenter.New(); err != nil {
			return err
		}
	}
	if o.profile != "" {
		stop, err := profile(o.profile)
		if err != nil {
			return fmt.Errorf("-cpuprofile: %w", err)
		}
		defer stop()
	}
	rows, err := c.Run(ctx, kinds)
	if err != nil {
		return err
	}
	report := contest.NewReport(peerVersion(), rows)
	for _, v := range report.Verdicts {
		if _, err := fmt.Fprintln(out, v.Line()); err != nil {
			return fmt.Errorf("write a verdict: %w", err)
		}
	}
	return report.Write(o.out)
}

// profile begins a CPU profile; what it returns ends it.
func profile(path string) (stop func(), err error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		file.Close()
	}, nil
}

// peerVersion names the peer as it is linked.
func peerVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == peerModule {
				return m.Path + " " + m.Version
			}
		}
	}
	return peerModule
}
