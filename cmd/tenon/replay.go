package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/render"
	"github.com/tenon-sh/tenon/internal/replay"
)

func newReplayCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "replay FILE",
		Short: "Make the plan of a snapshot file again",
		Long: `Read a snapshot file, which the controller writes when its planner fails, and ask the planner
once more. It prints the plan, or the failure with its stack, and ends with an error if the
planner fails. Nothing else is read and nothing is changed: neither a cluster nor a cloud is
needed.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runReplay(cmd.OutOrStdout(), args[0]) },
	}
}

func runReplay(out io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening the snapshot file: %w", err)
	}
	defer file.Close()
	c, err := replay.Read(file, replay.DefaultLimits())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	s := c.Snapshot
	fmt.Fprintf(out, "%s of %s, written by version %s\n", c.Step, s.Now.Format(time.RFC3339), c.Engine)
	fmt.Fprintf(out, "%d pods (%d without a place), %d nodes, %d claims, %d pools\n",
		len(s.Pods), len(s.Pending()), len(s.Nodes), len(s.Claims), len(s.Pools))
	if c.Panic != "" {
		fmt.Fprintf(out, "the planner had failed: %s\n", c.Panic)
	}
	answer := c.Run()
	switch {
	case answer.Panic != "":
		fmt.Fprintf(out, "the planner fails: %s\n%s", answer.Panic, answer.Stack)
		return errors.New("the planner fails on this snapshot")
	case c.Step == replay.Search:
		printMoves(out, &answer.Proposal)
	default:
		printPlan(out, &answer.Plan)
	}
	return nil
}

// printPlan tells what a plan is about, a line each.
func printPlan(out io.Writer, p *plan.Plan) {
	fmt.Fprintf(out, "the plan has %d commands\n", len(p.Commands))
	for _, c := range p.Commands {
		if create, ok := c.(command.CreateClaim); ok {
			var pods []string
			for _, pod := range create.Pods {
				pods = append(pods, pod.ID())
			}
			fmt.Fprintf(out, "  %s: %s, from $%.4f per hour, for %s\n",
				c.Key(), create.Requirements, create.Price, strings.Join(pods, ", "))
			continue
		}
		fmt.Fprintf(out, "  %s\n", c.Key())
	}
	for _, a := range p.Placement.Assigned {
		fmt.Fprintf(out, "  %s goes to %s\n", a.Pod.ID(), a.Host)
	}
	for i := range p.Placement.Unplaced {
		u := &p.Placement.Unplaced[i]
		fmt.Fprintf(out, "  %s has no place: %s\n", u.Pod.ID(), render.Unplaced(u))
	}
	for _, fault := range p.Placement.Faults {
		fmt.Fprintf(out, "  a mistake of the planner: %s\n", render.Fault(fault))
	}
}

// printMoves tells what a search has found.
func printMoves(out io.Writer, p *disrupt.Proposal) {
	fmt.Fprintf(out, "the search has found %d moves\n", len(p.Moves))
	for i := range p.Moves {
		m := &p.Moves[i]
		fmt.Fprintf(out, "  %s: %s, $%.4f instead of $%.4f per hour\n",
			m.Reason, strings.Join(m.Claims, ", "), m.After, m.Before)
	}
	for _, stay := range p.Blocked {
		fmt.Fprintf(out, "  %s stays: %s\n", stay.Node, stay.Reason)
	}
}
