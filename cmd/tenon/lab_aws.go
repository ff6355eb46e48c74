//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tenon-sh/tenon/cloudprovider/aws/awscloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/catalog"
	"github.com/tenon-sh/tenon/cloudprovider/kwok/kwokcloud"
	"github.com/tenon-sh/tenon/internal/lab"
	"github.com/tenon-sh/tenon/internal/lab/labaws"
)

// labCloud is the cloud beside a lab.
type labCloud struct {
	name string
	labaws.Options
}

func (c *labCloud) register(f *pflag.FlagSet) {
	f.StringVar(&c.name, "cloud", kwokcloud.Name, "kwok: nodes are made by the controller's simulated cloud; aws: a "+
		"simulated AWS account runs beside the lab")
	c.registerAccount(f)
}

// registerAccount adds what an account is like.
func (c *labCloud) registerAccount(f *pflag.FlagSet) {
	f.StringVar(&c.Cluster, "cluster-name", "lab", "name of the cluster: the account's network is tagged "+
		"karpenter.sh/discovery with it")
	f.StringVar(&c.Region, "region", "us-west-2", "region of the account")
	f.DurationVar(&c.Boot, "boot", 2*time.Second, "how long an instance is pending before it runs")
	f.DurationVar(&c.Join, "join", 3*time.Second, "how long a running instance takes to join the lab as a node")
	f.DurationVar(&c.Shutdown, "shutdown", 2*time.Second, "how long an instance takes to end")
	f.DurationVar(&c.Warning, "spot-warning", 2*time.Minute, "how long before its end a spot instance is warned")
}

// validate refuses settings of the account where there is none.
func (c *labCloud) validate(f *pflag.FlagSet) error {
	if c.name != kwokcloud.Name && c.name != awscloud.Name {
		return fmt.Errorf("--cloud: %q is not one of %s, %s", c.name, kwokcloud.Name, awscloud.Name)
	}
	mine := pflag.NewFlagSet("account", pflag.ContinueOnError)
	(&labCloud{}).registerAccount(mine)
	var problem error
	mine.VisitAll(func(flag *pflag.Flag) {
		if c.name != awscloud.Name && f.Changed(flag.Name) {
			problem = fmt.Errorf("--%s is for --cloud %s", flag.Name, awscloud.Name)
		}
	})
	if problem != nil || c.name != awscloud.Name {
		return problem
	}
	return c.validateAccount()
}

// validateAccount refuses settings with which no account, or no controller, would work: before anything is started.
func (c *labCloud) validateAccount() error {
	if err := awscloud.CheckClusterName(c.Cluster); err != nil {
		return err
	}
	if regions := catalog.Regions(); !slices.Contains(regions, c.Region) {
		return fmt.Errorf("--region: there is no region %q; there are %s", c.Region, strings.Join(regions, ", "))
	}
	for _, d := range []struct {
		flag string
		time.Duration
	}{{"boot", c.Boot}, {"join", c.Join}, {"shutdown", c.Shutdown}} {
		if d.Duration < 0 {
			return fmt.Errorf("--%s: %s is less than 0; use 0 for at once", d.flag, d.Duration)
		}
	}
	if c.Warning <= 0 {
		return fmt.Errorf("--spot-warning: %s is no warning; use more than 0, such as 2m", c.Warning)
	}
	return nil
}

// args are the flags that tell another process the same.
func (c *labCloud) args() []string {
	return []string{"--cluster-name=" + c.Cluster, "--region=" + c.Region, "--boot=" + c.Boot.String(), "--join=" +
		c.Join.String(),
		"--shutdown=" + c.Shutdown.String(), "--spot-warning=" + c.Warning.String()}
}

// labUpAWS starts a lab and an account beside it.
func labUpAWS(cmd *cobra.Command, cloud labCloud, detach bool) error {
	dir, err := cmd.Flags().GetString("dir")
	if err != nil {
		return err
	}
	ctx, stop := labSignals(cmd.Context())
	defer stop()
	if detach {
		return labUpDetached(ctx, dir, cloud, cmd.OutOrStdout())
	}
	running, err := lab.Start(ctx, dir, cmd.OutOrStdout())
	if err != nil {
		return err
	}
	cloud.Log = func(format string, args ...any) { fmt.Fprintf(cmd.OutOrStdout(), "aws: "+format+"\n", args...) }
	err = labaws.Serve(ctx, dir, cloud.Options, func(r labaws.Record) { labaws.Explain(cmd.OutOrStdout(), dir, r) })
	return errors.Join(err, running.Close())
}

// labUpDetached leaves both running in the background.
func labUpDetached(ctx context.Context, dir string, cloud labCloud, out io.Writer) error {
	binary, err := lab.Binary(ctx, out)
	if err != nil {
		return err
	}
	up := exec.CommandContext(ctx, binary, "up", "--dir="+dir, "--detach")
	up.Stdout, up.Stderr = out, out
	if err := up.Run(); err != nil {
		return fmt.Errorf("starting the lab: %w", err)
	}
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this executable: %w", err)
	}
	r, err := startAccount(ctx, executable, dir, cloud)
	if err != nil {
		down := exec.Command(binary, "down", "--dir="+dir)
		return errors.Join(err, down.Run())
	}
	labaws.Explain(out, dir, r)
	return nil
}

// startAccount runs "tenon ec2sim serve" in a session of its own and returns when it answers.
func startAccount(ctx context.Context, executable, dir string, cloud labCloud) (labaws.Record, error) {
	log, err := os.OpenFile(labaws.LogPath(dir), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return labaws.Record{}, fmt.Errorf("opening the log of the simulated account: %w", err)
	}
	defer func() { _ = log.Close() }()
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return labaws.Record{}, fmt.Errorf("resolving --dir: %w", err)
	}
	serve := exec.Command(executable, append([]string{"ec2sim", "serve", "--dir=" + absolute}, cloud.args()...)...)
	serve.Stdout, serve.Stderr = log, log
	serve.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := serve.Start(); err != nil {
		return labaws.Record{}, fmt.Errorf("starting the simulated account: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- serve.Wait() }()
	return labaws.Await(ctx, dir, ended)
}
