package labpods

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// changed has the status written soon.
func (p *pod) changed() {
	select {
	case p.news <- struct{}{}:
	default:
	}
}

// tell writes the status whenever it has changed, until the pod is to end.
func (p *pod) tell() {
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-p.news:
			p.writeStatus()
		}
	}
}

// statusPatience bounds one write.
const statusPatience = 10 * time.Second

// writeStatus writes what the pod is like. What fails is tried again.
func (p *pod) writeStatus() {
	ctx, cancel := context.WithTimeout(p.ctx, statusPatience)
	defer cancel()
	pods := p.r.api.CoreV1().Pods(p.object.Namespace)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now, err := pods.Get(ctx, p.object.Name, metav1.GetOptions{})
		if err != nil || now.UID != p.object.UID {
			return err
		}
		p.fill(&now.Status)
		_, err = pods.UpdateStatus(ctx, now, metav1.UpdateOptions{})
		return err
	})
	if err != nil && p.ctx.Err() == nil {
		p.r.o.Log("the status of pod %s: %v", p.name(), err)
		time.AfterFunc(time.Second, p.changed)
	}
}

// fill describes the pod. Its address is not the loopback one that it listens on: endpoints can't be.
func (p *pod) fill(status *corev1.PodStatus) {
	now := metav1.Now()
	if status.StartTime == nil {
		status.StartTime = &now
	}
	_, rest, _ := strings.Cut(p.address, ".")
	status.PodIP = "10." + rest
	status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
	status.HostIP, status.HostIPs = "127.0.0.1", []corev1.HostIP{{IP: "127.0.0.1"}}
	status.Phase = corev1.PodRunning
	ready := corev1.ConditionTrue
	status.ContainerStatuses, status.InitContainerStatuses = nil, nil
	for _, c := range p.containers {
		one := c.status()
		if !one.Ready {
			ready = corev1.ConditionFalse
		}
		if one.State.Waiting != nil && one.State.Waiting.Reason != "CrashLoopBackOff" && one.RestartCount == 0 {
			status.Phase = corev1.PodPending
		}
		status.ContainerStatuses = append(status.ContainerStatuses, one)
	}
	for i := range p.object.Spec.InitContainers {
		c := &p.object.Spec.InitContainers[i]
		status.InitContainerStatuses = append(status.InitContainerStatuses, corev1.ContainerStatus{Name: c.Name,
			Image: c.Image, Ready: true,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed",
				StartedAt: now, FinishedAt: now}}})
	}
	for kind, is := range map[corev1.PodConditionType]corev1.ConditionStatus{
		corev1.PodReadyToStartContainers: corev1.ConditionTrue, corev1.PodInitialized: corev1.ConditionTrue,
		corev1.ContainersReady: ready, corev1.PodReady: ready,
	} {
		setCondition(status, kind, is, now)
	}
}

func setCondition(status *corev1.PodStatus, kind corev1.PodConditionType, is corev1.ConditionStatus, now metav1.Time) {
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Type == kind {
			if c.Status != is {
				c.Status, c.LastTransitionTime = is, now
			}
			return
		}
	}
	status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: is, LastTransitionTime: now})
}

func (c *container) status() corev1.ContainerStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	started := c.state.Running != nil
	return corev1.ContainerStatus{Name: c.spec.Name, Image: c.spec.Image, Ready: c.ready, Started: &started,
		RestartCount: c.restarts,
		State:        c.state, LastTerminationState: c.last}
}
