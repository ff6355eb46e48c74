package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// interruption is the part of a show in which the cloud takes a node back: its pods must run elsewhere before it is gone.
func (s *show) interruption(ctx context.Context, cloud *awsSky, peak view) error {
	id, ok := peak.busiestSpot()
	if !ok {
		return errors.New("interrupting a spot instance: there is none")
	}
	if err := cloud.interrupt(ctx, id); err != nil {
		return fmt.Errorf("interrupting a spot instance: %w", err)
	}
	s.screen.title("AWS takes the spot instance %s back in %s", id, spotWarning)
	begin, seen := time.Now(), false
	survived := func(v view) bool {
		there := v.has(id)
		seen = seen || there
		return seen && !there && v.Running == s.Pods && v.settled()
	}
	if v, _, err := s.watch(ctx, begin, survived, spotWarning); err != nil {
		return fmt.Errorf("waiting for the pods of %s to run elsewhere (%d of %d run): %w", id, v.Running, s.Pods, err)
	}
	s.screen.linger(ctx)
	return nil
}

// busiestSpot is the spot instance with the most pods.
func (v view) busiestSpot() (id string, ok bool) {
	most := -1
	for _, r := range v.Rows {
		if r.Terms == v1.CapacityTypeSpot && r.Instance != "" && r.Pods > most {
			id, most = r.Instance, r.Pods
		}
	}
	return id, most >= 0
}

// has tells whether a node of the instance is there.
func (v view) has(instance string) bool {
	for _, r := range v.Rows {
		if r.Instance == instance {
			return true
		}
	}
	return false
}

// settled tells whether every node is ready: none comes and none goes.
func (v view) settled() bool {
	for _, r := range v.Rows {
		if r.Status != ready {
			return false
		}
	}
	return true
}
