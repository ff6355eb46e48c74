// Command bench gives the same work to Tenon and to its peer Karpenter, one after the other, each on a fresh lab of the
// same kind on this machine, and compares. Each scenario is one line on standard output; progress goes to standard
// error, and every figure to a JSON file.
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
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case interrupted && err != nil && !errors.Is(err, cluster.ErrStillUp):
		fmt.Fprintln(os.Stderr, "bench: interrupted; everything that was started has been ended")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench: "+strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
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
	if err := r.prepare(ctx); err != nil {
		return err
	}
	return r.all(ctx, plan(o), out)
}

// all does one session after the other. What one contestant fails to do is missing from the line, and the others go on;
// the failure is told at the end.
func (r *runner) all(ctx context.Context, sessions []session, out io.Writer) error {
	var done []*report.Scenario
	var failures []error
	for _, s := range sessions {
		scenarios := s.scenarios()
		done = append(done, scenarios...)
		for _, who := range r.contestants {
			if !s.needs(who.name()) {
				continue
			}
			if err := r.one(ctx, who, s, scenarios); err != nil {
				err = fmt.Errorf("%s, %s: %w", who.name(), s.name(), err)
				if ctx.Err() != nil || errors.Is(err, cluster.ErrStillUp) {
					return err
				}
				fmt.Fprintln(r.messages, "bench: "+err.Error())
				failures = append(failures, err)
			}
			if err := report.WriteJSON(filepath.Join(outputFolder, "lab.json"), done); err != nil {
				return err
			}
		}
		for _, scenario := range scenarios {
			if _, err := fmt.Fprintln(out, scenario.Line()); err != nil {
				return fmt.Errorf("write a line: %w", err)
			}
		}
	}
	return errors.Join(failures...)
}

// prepare fetches the peer, whose instance types every run needs, and builds it if it takes part.
func (r *runner) prepare(ctx context.Context) error {
	module, err := contestant.FindPeer(ctx, peerPin)
	if err != nil {
		return err
	}
	if r.prices, err = catalog.Load(module.InstanceTypes()); err != nil {
		return err
	}
	if !r.options.peerOnly && !r.options.baseOnly {
		tenon, err := contestant.Tenon(r.tenon, tenonCRDs(), module.InstanceTypes())
		if err != nil {
			return err
		}
		r.contestants = append(r.contestants, runs{&tenon})
	}
	if !r.options.tenonOnly && !r.options.baseOnly {
		fmt.Fprintf(r.messages, "bench: building the peer, Karpenter %s (minutes the first time)\n", module.Version)
		binary, err := filepath.Abs(filepath.Join(outputFolder, "karpenter-kwok"))
		if err != nil {
			return fmt.Errorf("find the place for the peer's executable: %w", err)
		}
		if err := module.Build(ctx, binary, r.messages); err != nil {
			return err
		}
		peer := contestant.Peer(binary, module)
		r.contestants = append(r.contestants, runs{&peer})
	}
	r.contestants = append(r.contestants, runs{})
	return nil
}
