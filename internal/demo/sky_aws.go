package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/control"
	"github.com/tenon-sh/tenon/internal/lab/labaws"
)

// spotWarning is how long before its end a spot instance is warned: as at AWS.
const spotWarning = 2 * time.Minute

// awsSky is a simulated AWS account: a process of its own, which the controller takes for AWS.
type awsSky struct {
	executable string
	dir        string // of the lab
	keep       bool

	account labaws.Record
	cmd     *exec.Cmd
	over    chan error // gets one value when the process has ended
}

func (s *awsSky) name() string { return "demo-aws" }

func (s *awsSky) examples() ([]string, string) {
	return []string{"aws/nodepool.yaml", "aws/inflate.yaml"}, "examples/aws: an EC2NodeClass, a NodePool, and " +
		"deployment inflate"
}

// begin starts the account and waits until it answers. Unless it is to be kept it ends with this process, whatever ends
// that.
func (s *awsSky) begin(ctx context.Context) error {
	log, err := os.OpenFile(labaws.LogPath(s.dir), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of the simulated AWS account: %w", err)
	}
	defer func() { _ = log.Close() }()
	args := []string{"ec2sim", "serve", "--dir=" + s.dir, "--spot-warning=" + spotWarning.String()}
	if !s.keep {
		args = append(args, "--until-stdin-closes")
	}
	s.cmd = exec.Command(s.executable, args...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: s.keep, Setpgid: !s.keep}
	if !s.keep {
		if _, err := s.cmd.StdinPipe(); err != nil {
			return fmt.Errorf("making a pipe for the simulated AWS account: %w", err)
		}
	}
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("starting the simulated AWS account: %w", err)
	}
	s.over = make(chan error, 1)
	go func() {
		err := s.cmd.Wait()
		if err == nil {
			err = errors.New("without an error")
		}
		s.over <- err
	}()
	s.account, err = labaws.Await(ctx, s.dir, s.over)
	return err
}

func (s *awsSky) environment() []string { return s.account.Env }

func (s *awsSky) ended() error {
	select {
	case err := <-s.over:
		s.over <- err // for the next who asks
		return fmt.Errorf("the simulated AWS account ended (%w); see %s", err, relative(labaws.LogPath(s.dir)))
	default:
		return nil
	}
}

func (s *awsSky) end() error {
	if s.cmd == nil || s.cmd.Process == nil {
		return nil
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending the simulated AWS account: %w", err)
	}
	select {
	case <-s.over:
		return nil
	case <-time.After(controllerGrace):
	}
	_ = s.cmd.Process.Kill()
	<-s.over
	return fmt.Errorf("the simulated AWS account did not end in %s and was killed", controllerGrace)
}

func (s *awsSky) panel() control.Client { return control.Client{URL: s.account.URL} }

func (s *awsSky) prices(ctx context.Context) (func(*v1.NodeClaim, *corev1.Node) float64, error) {
	machines, err := s.panel().Machines(ctx)
	if err != nil {
		return nil, err
	}
	price := make(map[string]float64, len(machines))
	for _, m := range machines {
		price[m.ID] = m.Price
	}
	return func(c *v1.NodeClaim, n *corev1.Node) float64 {
		if c != nil {
			return price[instanceID(c.Status.ProviderID)]
		}
		return price[instanceID(n.Spec.ProviderID)]
	}, nil
}

// instanceID is the end of a provider ID.
func instanceID(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}

// instances counts those that have not ended.
func (s *awsSky) instances(ctx context.Context, _ client.Client) (int, error) {
	machines, err := s.panel().Machines(ctx)
	n := 0
	for _, m := range machines {
		if m.State != "terminated" {
			n++
		}
	}
	return n, err
}

// interrupt has AWS take a spot instance back.
func (s *awsSky) interrupt(ctx context.Context, id string) error {
	_, err := s.panel().Happen(ctx, "interrupt", control.Pick{Machines: []string{id}})
	return err
}

// takenBack lists the spot instances that AWS has ended because nobody else had in time.
func (s *awsSky) takenBack(ctx context.Context) ([]string, error) {
	machines, err := s.panel().Machines(ctx)
	var out []string
	for _, m := range machines {
		if strings.HasPrefix(m.Reason, "Server.SpotInstanceTermination") {
			out = append(out, m.ID)
		}
	}
	return out, err
}
