//go:build !windows

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/control"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/faults"
)

// newSimHappenings are the things that happen to machines.
func newSimHappenings() []*cobra.Command {
	var out []*cobra.Command
	for _, h := range []struct{ verb, short string }{
		{"interrupt", "Interrupt spot instances: a warning, and the end when it is over"},
		{"rebalance", "Advise to rebalance: spot instances are at a higher risk of interruption"},
		{"kill", "Let machines die, while EC2 calls them running"},
		{"impair", "Let status checks of machines fail; without --system and --instance they are well again"},
		{"withdraw", "Let AWS end machines at once, without a warning"},
		{"schedule", "Plan an event for machines, such as their retirement"},
	} {
		out = append(out, newSimHappening(h.verb, h.short))
	}
	return out
}

func newSimHappening(verb, short string) *cobra.Command {
	in := control.Pick{}
	cmd := &cobra.Command{
		Use:     verb + " [MACHINE...]",
		Short:   short,
		Example: fmt.Sprintf("  tenon ec2sim %s i-0123456789abcdef0\n  tenon ec2sim %s --spot", verb, verb),
		RunE: simCall(func(cmd *cobra.Command, c control.Client, args []string) error {
			in.Machines = args
			if err := pickMachines(cmd.Flags(), &in); err != nil {
				return err
			}
			ids, err := c.Happen(cmd.Context(), verb, in)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), strings.Join(ids, "\n"))
			return err
		}),
	}
	cmd.Flags().Int(pickSpot, 0, "so many of the spot instances, whichever; 1 if no number is given")
	cmd.Flags().Lookup(pickSpot).NoOptDefVal = "1"
	switch verb {
	case "interrupt", "rebalance":
	default:
		cmd.Flags().Int(pickOnDemand, 0, "so many of the on-demand instances, whichever; 1 if no number is given")
		cmd.Flags().Lookup(pickOnDemand).NoOptDefVal = "1"
	}
	if verb == "impair" {
		cmd.Flags().BoolVar(&in.System, "system", false, "the check of the system fails")
		cmd.Flags().BoolVar(&in.Instance, "instance", false, "the check of the instance fails")
	}
	if verb == "schedule" {
		cmd.Flags().StringVar(&in.Event, "event", "", "what is planned; empty for instance-retirement")
	}
	return cmd
}

// The flags that pick machines by how they were bought; their names are the capacity types.
const (
	pickSpot     = "spot"
	pickOnDemand = "on-demand"
)

// pickMachines reads which machines are meant: those that are named, or any of a capacity type.
func pickMachines(f *pflag.FlagSet, in *control.Pick) error {
	ways := "name machines (i-… or their nodes), or give --" + pickSpot
	if f.Lookup(pickOnDemand) != nil {
		ways += " or --" + pickOnDemand
	}
	for _, kind := range []string{pickSpot, pickOnDemand} {
		if !f.Changed(kind) {
			continue
		}
		n, err := f.GetInt(kind)
		if err != nil {
			return err
		}
		if n < 1 {
			return fmt.Errorf("--%s: %d is not a number of instances; use 1 or more", kind, n)
		}
		if in.Any > 0 || len(in.Machines) > 0 {
			return fmt.Errorf("only one of these at a time: %s", ways)
		}
		in.Any, in.CapacityType = n, kind
	}
	if in.Any == 0 && len(in.Machines) == 0 {
		return fmt.Errorf("%s; \"tenon ec2sim machines\" lists them", ways)
	}
	return nil
}

// newSimTrouble are the things that go wrong with calls.
func newSimTrouble() []*cobra.Command {
	return []*cobra.Command{newSimFail(), newSimThrottle(),
		newSimPermission("deny", "Take permissions away", "ec2:CreateFleet"), newSimPermission("allow",
			"Give permissions back", "ec2:CreateFleet"),
		newSimList(), newSimCalls()}
}

// split reads ec2:CreateFleet.
func split(action string) (service, name string, err error) {
	service, name, ok := strings.Cut(action, ":")
	if !ok {
		return "", "", fmt.Errorf("%q is not SERVICE:ACTION, such as ec2:CreateFleet or 'ssm:*'", action)
	}
	return service, name, nil
}

func newSimFail() *cobra.Command {
	f := control.Fault{}
	var delay time.Duration
	cmd := &cobra.Command{
		Use:   "fail SERVICE:ACTION [CODE]",
		Short: "Make calls fail, wait, or lose their answers",
		Example: `  tenon ec2sim fail ec2:CreateFleet InternalError --status 500 --times 3
  tenon ec2sim fail 'ssm:*' --delay 5s
  tenon ec2sim fail ec2:CreateFleet --lose --times 1`,
		Args: cobra.RangeArgs(1, 2),
		RunE: simCall(func(cmd *cobra.Command, c control.Client, args []string) error {
			var err error
			if f.Service, f.Action, err = split(args[0]); err != nil {
				return err
			}
			if len(args) == 2 {
				f.Code = args[1]
			}
			f.DelaySeconds = delay.Seconds()
			return c.Fail(cmd.Context(), f)
		}),
	}
	cmd.Flags().StringVar(&f.Message, "message", "", "message of the error")
	cmd.Flags().IntVar(&f.Status, "status", 0, "HTTP status of the error; 400 if none is given")
	cmd.Flags().IntVar(&f.Times, "times", 0, "how many calls; 0 for all until trouble is cleared")
	cmd.Flags().IntVar(&f.Every, "every", 0, "only each n-th call")
	cmd.Flags().DurationVar(&delay, "delay", 0, "how long calls wait first")
	cmd.Flags().BoolVar(&f.Lose, "lose", false, "the call is done and its answer lost")
	return cmd
}

func newSimThrottle() *cobra.Command {
	l := faults.Limit{}
	cmd := &cobra.Command{
		Use:     "throttle SERVICE:ACTION",
		Short:   "Let through only so many calls",
		Example: "  tenon ec2sim throttle 'ec2:Describe*' --per-second 2 --burst 5",
		Args:    cobra.ExactArgs(1),
		RunE: simCall(func(cmd *cobra.Command, c control.Client, args []string) error {
			var err error
			if l.Service, l.Action, err = split(args[0]); err != nil {
				return err
			}
			return c.Do(cmd.Context(), http.MethodPost, "throttle", l, nil)
		}),
	}
	cmd.Flags().Float64Var(&l.PerSecond, "per-second", 1, "calls that are let through each second")
	cmd.Flags().Float64Var(&l.Burst, "burst", 1, "calls that are let through at once")
	return cmd
}

func newSimPermission(verb, short, example string) *cobra.Command {
	return &cobra.Command{
		Use:     verb + " SERVICE:ACTION...",
		Short:   short,
		Example: fmt.Sprintf("  tenon ec2sim %s %s", verb, example),
		Args:    cobra.MinimumNArgs(1),
		RunE: simCall(func(cmd *cobra.Command, c control.Client, args []string) error {
			for _, action := range args {
				if _, _, err := split(action); err != nil {
					return err
				}
				if err := c.Do(cmd.Context(), http.MethodPost, "permissions/"+verb, map[string]string{"action": action},
					nil); err != nil {
					return err
				}
			}
			return nil
		}),
	}
}

func newSimList() *cobra.Command {
	clear := false
	cmd := &cobra.Command{
		Use:   "trouble",
		Short: "Show what goes wrong with calls now, or end all of it",
		Args:  cobra.NoArgs,
		RunE: simCall(func(cmd *cobra.Command, c control.Client, _ []string) error {
			if clear {
				return c.Do(cmd.Context(), http.MethodDelete, "trouble", nil, nil)
			}
			var out control.Trouble
			if err := c.Do(cmd.Context(), http.MethodGet, "trouble", nil, &out); err != nil {
				return err
			}
			print := json.NewEncoder(cmd.OutOrStdout())
			print.SetIndent("", "  ")
			return print.Encode(out)
		}),
	}
	cmd.Flags().BoolVar(&clear, "clear", false, "end all trouble")
	return cmd
}

func newSimCalls() *cobra.Command {
	return &cobra.Command{
		Use:   "calls",
		Short: "Count the calls by action",
		Args:  cobra.NoArgs,
		RunE: simCall(func(cmd *cobra.Command, c control.Client, _ []string) error {
			counts, err := c.Calls(cmd.Context())
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, action := range slices.Sorted(maps.Keys(counts)) {
				fmt.Fprintf(table, "%s\t%d\n", action, counts[action])
			}
			return table.Flush()
		}),
	}
}
