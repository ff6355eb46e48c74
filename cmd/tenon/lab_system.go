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
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tenon-sh/tenon/internal/lab/labaws"
	"github.com/tenon-sh/tenon/internal/lab/labpods"
)

// labZones are zones that both clouds of the lab have.
const labZones = "abc"

// newLabSystem makes "tenon lab system".
func newLabSystem() *cobra.Command {
	var o systemOptions
	var detach bool
	cmd := &cobra.Command{
		Use:   "system",
		Short: "Give the running lab system nodes, on which the pods of the chart really run",
		Long: `Give the running lab nodes for the controller's own chart. A container of Tenon's image on them
is a process of this executable, or of the one that --controller names, with the environment,
the files, the service account and the probes that its pod says, and "tenon lab kubectl -- logs"
shows what it prints. Other containers there are simulated. The nodes have the taint
CriticalAddonsOnly, so other workloads stay away.

  tenon lab up --detach
  tenon lab system --detach
  export KUBECONFIG=.lab/kubeconfig
  helm install karpenter charts/karpenter --namespace karpenter --create-namespace \
    --set settings.cloudProvider=kwok --wait

It works on Linux, where each pod has a loopback address to itself.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			dir, err := cmd.Flags().GetString("dir")
			if err != nil {
				return err
			}
			ctx, stop := labSignals(cmd.Context())
			defer stop()
			if detach {
				return detachSystem(ctx, dir, o, cmd.OutOrStdout())
			}
			return serveSystem(ctx, dir, o, cmd.OutOrStdout())
		},
	}
	cmd.Flags().IntVar(&o.nodes, "nodes", 2, "how many nodes, each in a zone of its own")
	cmd.Flags().StringVar(&o.region, "region", "us-west-2", "region of their zones")
	cmd.Flags().StringVar(&o.controller, "controller", "", "executable that Tenon's image stands for, such as "+
		"bin/controller; empty for this one")
	cmd.Flags().BoolVar(&detach, "detach", false, "return when the nodes are ready and leave them running")
	return cmd
}

// systemOptions are the settings of "tenon lab system".
type systemOptions struct {
	nodes              int
	region, controller string
}

// validate refuses what can't be, and makes the controller a path that holds in every folder.
func (o *systemOptions) validate() error {
	if o.nodes < 1 || o.nodes > len(labZones) {
		return fmt.Errorf("--nodes: %d is not one of 1 to %d", o.nodes, len(labZones))
	}
	if o.controller == "" {
		executable, err := os.Executable()
		if err != nil {
			return fmt.Errorf("finding this executable: %w", err)
		}
		o.controller = executable
		return nil
	}
	// A name without a folder stands for a file here, and not for one on the PATH.
	path, err := filepath.Abs(o.controller)
	if err != nil {
		return fmt.Errorf("resolving --controller: %w", err)
	}
	if _, err := exec.LookPath(path); err != nil {
		return fmt.Errorf("--controller: %s can't be run (%w); build it with: make controller", o.controller, err)
	}
	o.controller = path
	return nil
}

// serveSystem runs the pods of the system nodes until the context ends or the lab does. In a lab with a simulated AWS
// account the pods get the account's variables, as EKS gives them.
func serveSystem(ctx context.Context, dir string, s systemOptions, out io.Writer) error {
	o := labpods.Options{Executable: s.controller, Log: func(format string, args ...any) {
		fmt.Fprintf(out, "system: "+format+"\n", args...)
	}}
	for _, letter := range labZones[:s.nodes] {
		o.Zones = append(o.Zones, s.region+string(letter))
	}
	o.Env = func() []string {
		account, ok, err := labaws.Running(dir)
		if err != nil || !ok {
			return nil
		}
		return account.Env
	}
	return labpods.Serve(ctx, dir, o, func() { explainSystem(out, s.nodes) })
}

func explainSystem(out io.Writer, nodes int) {
	fmt.Fprintf(out, "system: %d nodes are ready; pods of Tenon's image run on them\n", nodes)
}

// detachSystem leaves the nodes running in the background.
func detachSystem(ctx context.Context, dir string, s systemOptions, out io.Writer) error {
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this executable: %w", err)
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("resolving --dir: %w", err)
	}
	if pid, err := labpods.Running(absolute); err != nil || pid != 0 {
		return errors.Join(err, fmt.Errorf("the lab in %s already has system nodes (pid %d)", dir, pid))
	}
	log, err := os.OpenFile(labpods.LogPath(absolute), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("no lab runs in %s: start one with: tenon lab up --dir %s", dir, dir)
	}
	if err != nil {
		return fmt.Errorf("opening the log of the system nodes: %w", err)
	}
	defer func() { _ = log.Close() }()
	serve := exec.Command(executable, "lab", "system", "--dir="+absolute, fmt.Sprintf("--nodes=%d", s.nodes),
		"--region="+s.region, "--controller="+s.controller)
	serve.Stdout, serve.Stderr = log, log
	serve.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := serve.Start(); err != nil {
		return fmt.Errorf("starting the system nodes: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- serve.Wait() }()
	if err := labpods.Await(ctx, absolute, ended); err != nil {
		return err
	}
	explainSystem(out, s.nodes)
	return nil
}
