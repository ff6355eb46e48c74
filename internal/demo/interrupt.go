package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// interruption is the part of a show in which the cloud takes a node back: its pods must run elsewhere before it is
// gone. It returns how many interruptions the controller has heard of and been through.
func (s *show) interruption(ctx context.Context, cloud *awsSky, peak view) (int, error) {
	id, ok := peak.busiestSpot()
	if !ok {
		return 0, errors.New("interrupting a spot instance: there is none")
	}
	if err := cloud.interrupt(ctx, id); err != nil {
		return 0, fmt.Errorf("interrupting a spot instance: %w", err)
	}
	s.screen.title("AWS takes the spot instance %s back in %s", id, spotWarning)
	begin, seen := time.Now(), false
	survived := func(v view) bool {
		there := v.has(id)
		seen = seen || there
		return seen && !there && v.Running == s.Pods && v.settled()
	}
	if v, _, err := s.watch(ctx, begin, survived, spotWarning); err != nil {
		return 0, fmt.Errorf("waiting for the pods of %s to run elsewhere (%d of %d run): %w", id, v.Running,
			s.Pods, err)
	}
	s.screen.linger(ctx)
	late, err := cloud.takenBack(ctx)
	if err != nil {
		return 0, err
	}
	told, err := s.world.interruptions(ctx)
	if err == nil && (told != 1 || len(late) > 0) {
		err = fmt.Errorf("the controller has told of %d interruptions, there was 1; AWS itself had to end %v; see %s",
			told, late, relative(s.dir.controllerLog()))
	}
	return told, err
}

// interruptions counts the nodes of which the controller has said that the cloud takes them back.
func (w *world) interruptions(ctx context.Context) (int, error) {
	events := &corev1.EventList{}
	if err := w.api.List(ctx, events); err != nil {
		return 0, fmt.Errorf("counting interruptions: %w", err)
	}
	claims := map[string]bool{}
	for _, e := range events.Items {
		if e.Reason == "SpotInterrupted" && e.InvolvedObject.Kind == "NodeClaim" {
			claims[e.InvolvedObject.Name] = true
		}
	}
	return len(claims), nil
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
