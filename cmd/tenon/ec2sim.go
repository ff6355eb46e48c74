//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/control"
	"github.com/tenon-sh/tenon/internal/lab"
	"github.com/tenon-sh/tenon/internal/lab/labaws"
)

// newEC2SimCommand makes "tenon ec2sim": the hand that makes things happen in a simulated AWS account.
func newEC2SimCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ec2sim",
		Short: "Make things happen in the lab's simulated AWS account",
		Long: `Make things happen in the simulated AWS account of a lab (tenon lab up --cloud aws): interrupt
spot instances, take capacity away, reserve it, change prices, publish images, make calls fail,
end sessions. Machines are named by their ids (i-…) or by the names of their nodes.

The account is that of --endpoint or of the lab in --dir. Without these it is the one whose
variables the shell has (. .lab/aws.env), then the one of the lab in .lab.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().String("dir", defaultLab, "directory of the lab; default: $"+labaws.DirVariable+
		", then "+defaultLab)
	cmd.PersistentFlags().String("endpoint", "", "URL of the account; empty for the one of the lab")
	cmd.AddCommand(newSimServe(), newSimMachines(), newSimCapacity(), newSimPrice(), newSimAMI(), newSimSubnet(),
		newSimSnapshot(), newSimShift(), newSimCredentials(),
		newSimReservation(), newSimPlacementGroup())
	cmd.AddCommand(newSimHappenings()...)
	cmd.AddCommand(newSimTrouble()...)
	cmd.SetFlagErrorFunc(belowZero)
	return cmd
}

// belowZero says what is wrong with a number such as -1, which reads as a flag. No argument of these commands can be
// one.
func belowZero(_ *cobra.Command, err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return err
	}
	word := "-" + unknown.GetSpecifiedShortnames()
	if _, notNumber := strconv.ParseFloat(word, 64); notNumber != nil {
		return err
	}
	return fmt.Errorf("%s is less than 0, and no number here can be; use 0 or more", word)
}

// defaultLab is where a lab is that nobody named.
const defaultLab = ".lab"

// simClient reaches the account: by --endpoint, through the lab in --dir, or as the shell's variables say.
func simClient(cmd *cobra.Command) (control.Client, error) {
	at, err := cmd.Flags().GetString("endpoint")
	if err != nil {
		return control.Client{}, err
	}
	if at != "" {
		if u, err := url.Parse(at); err != nil || u.Host == "" {
			return control.Client{}, fmt.Errorf("--endpoint: %q is not a URL such as http://127.0.0.1:4566", at)
		}
		return control.Client{URL: at}, nil
	}
	dir, named, err := simDir(cmd)
	if err != nil {
		return control.Client{}, err
	}
	r, ok, err := labaws.Running(dir)
	if err != nil {
		return control.Client{}, err
	}
	if ok {
		return control.Client{URL: r.URL}, nil
	}
	// What "ec2sim serve --alone" prints names no lab.
	if at := os.Getenv(endpointVariable); !named && onThisMachine(at) {
		return control.Client{URL: at}, nil
	}
	if runs, err := lab.Runs(dir); err == nil && runs {
		return control.Client{}, fmt.Errorf("the lab in %s has no simulated AWS account: start one with: tenon "+
			"ec2sim serve --dir %s", dir, dir)
	}
	return control.Client{}, fmt.Errorf("no simulated AWS account runs for the lab in %s: start both with: tenon lab "+
		"up --cloud aws --dir %s", dir, dir)
}

// simDir is the directory of the lab; named says that a flag or the shell's variables name it.
func simDir(cmd *cobra.Command) (dir string, named bool, err error) {
	dir, err = cmd.Flags().GetString("dir")
	if err != nil || cmd.Flags().Changed("dir") {
		return dir, true, err
	}
	if told := os.Getenv(labaws.DirVariable); told != "" {
		return told, true, nil
	}
	return dir, false, nil
}

// endpointVariable is where programs that use AWS find an account.
const endpointVariable = "AWS_ENDPOINT_URL"

// onThisMachine tells a simulated account's URL from that of another service.
func onThisMachine(at string) bool {
	u, err := url.Parse(at)
	return err == nil && u.Scheme == "http" && u.Hostname() == "127.0.0.1"
}

// simCall makes a command that calls the account.
func simCall(do func(cmd *cobra.Command, c control.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := simClient(cmd)
		if err != nil {
			return err
		}
		err = do(cmd, c, args)
		var no *control.Refusal
		if errors.As(err, &no) {
			return errors.New(no.Message) // how the account was asked is no concern of whoever typed a command
		}
		return err
	}
}

// newSimServe runs an account for a lab that is there already ("tenon lab up --cloud aws" does so itself), or for none.
func newSimServe() *cobra.Command {
	var cloud labCloud
	held, alone, port := false, false, 0
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a simulated AWS account for the lab in --dir until Ctrl-C or until the lab ends",
		Long: `Run a simulated AWS account for the lab in --dir until Ctrl-C or until the lab ends.

With --alone it belongs to no lab and its instances join no cluster: an endpoint for programs
that use AWS. It prints the variables that they need.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if port != 0 && !alone {
				return errors.New("--port is for --alone; that of a lab's account is in DIR/aws.env")
			}
			if err := cloud.validateAccount(); err != nil {
				return err
			}
			ctx, stop := labSignals(cmd.Context())
			defer stop()
			if held {
				var cancel context.CancelFunc
				ctx, cancel = untilStdinCloses(ctx)
				defer cancel()
			}
			return serveAccount(ctx, cmd, cloud, alone, port)
		},
	}
	cloud.registerAccount(cmd.Flags())
	cmd.Flags().BoolVar(&alone, "alone", false, "run without a lab")
	cmd.Flags().IntVar(&port, "port", 0, "port of 127.0.0.1, with --alone; 0 for any")
	cmd.Flags().BoolVar(&held, "until-stdin-closes", false, "end when standard input closes")
	cmd.Flags().Lookup("until-stdin-closes").Hidden = true
	return cmd
}

func serveAccount(ctx context.Context, cmd *cobra.Command, cloud labCloud, alone bool, port int) error {
	out := cmd.OutOrStdout()
	if alone {
		return labaws.Alone(ctx, cloud.Options, port, func(r labaws.Record) { fmt.Fprint(out, labaws.Exports(r.Env)) })
	}
	dir, _, err := simDir(cmd)
	if err != nil {
		return err
	}
	cloud.Log = func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
	return labaws.Serve(ctx, dir, cloud.Options, func(r labaws.Record) { labaws.Explain(out, dir, r) })
}

func newSimMachines() *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use:     "machines",
		Aliases: []string{"instances", "get"},
		Short:   "List the instances",
		Args:    cobra.NoArgs,
		RunE: simCall(func(cmd *cobra.Command, c control.Client, _ []string) error {
			list, err := c.Machines(cmd.Context())
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "INSTANCE\tSTATE\tTYPE\tZONE\tCAPACITY\t$/HOUR\tIMAGE\tNODE\tNOTE")
			for _, m := range list {
				if !all && m.State == "terminated" {
					continue
				}
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%.4f\t%s\t%s\t%s\n", m.ID, m.State, m.Type, m.Zone,
					m.CapacityType, m.Price, m.Image, m.Node, noteOf(m))
			}
			return table.Flush()
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "list those that have ended, too")
	return cmd
}

// noteOf is what is unusual about a machine.
func noteOf(m control.Machine) string {
	switch {
	case m.Problem != "":
		return "does not join: " + m.Problem
	case m.Dead:
		return "dead"
	default:
		return m.Reason
	}
}

// untilStdinCloses ends a context with the standard input: a pipe that the starter holds, so that we can't outlive it.
func untilStdinCloses(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return ctx, cancel
}
