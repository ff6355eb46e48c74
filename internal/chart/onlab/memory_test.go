package onlab

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var memoryClasses = flag.Int("memory-classes", 0,
	"how many EC2NodeClasses and NodePools TestMemory makes; 0 for no test")

const (
	// memoryBound is the limit of the chart's container, and what the peak is judged by.
	memoryBound = 1 << 30
	// podsOfAPool is how many pods each pool gets.
	podsOfAPool = 5
	// memoryPatience bounds the wait for all of them, memoryCalm is how long the peak must not have grown then.
	memoryPatience, memoryCalm = 15 * time.Minute, time.Minute
)

// TestMemory: the chart's controller with a memory limit of 1Gi stays below it with many EC2NodeClasses and NodePools
// of all instance types. "make memory" runs it. The limit reaches the controller as MEMORY_LIMIT; nothing ends a
// process of the lab that needs more, so the peak tells.
func TestMemory(t *testing.T) {
	if *memoryClasses == 0 {
		t.Skip("it takes minutes: make memory")
	}
	w := newWorld(t, withAccount)
	w.runHelm("install", release, w.helm.Chart("karpenter"), "--namespace", release, "--wait", "--timeout", "2m",
		"--set", "settings.clusterName=lab,replicas=1",
		"--set", "controller.resources.requests.memory=1Gi,controller.resources.limits.memory=1Gi")
	began := time.Now()
	for i := range *memoryClasses {
		for _, text := range []string{memoryClass, memoryPool, memoryPods} {
			named := strings.NewReplacer("NAME", fmt.Sprintf("team-%d", i), "GIB", fmt.Sprint(20+i), "PODS",
				fmt.Sprint(podsOfAPool))
			if err := w.c.Create(t.Context(), parsed(t, named.Replace(text))); err != nil {
				t.Fatal(err)
			}
		}
	}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	want, running, peak, grown, before := *memoryClasses*podsOfAPool, 0, 0, time.Now(), w.restarts()
	for running < want || time.Since(grown) < memoryCalm {
		<-ticker.C
		if now := w.peakOfController(); now > peak {
			peak, grown = now, time.Now()
		}
		if r := w.runningPods(); r != running {
			running = r
			t.Logf("%5.0f s  %d pods run, at most %d MiB are resident", time.Since(began).Seconds(), running, peak>>20)
		}
		if running < want && time.Since(began) > memoryPatience {
			t.Fatalf("%d of %d pods run after %s", running, want, memoryPatience)
		}
	}
	t.Logf("with %d EC2NodeClasses and NodePools and %d pods at most %d MiB were resident", *memoryClasses,
		want, peak>>20)
	if peak > memoryBound {
		t.Errorf("that is more than %d MiB", memoryBound>>20)
	}
	if now := w.restarts(); now != before {
		t.Logf("the controller was started %d times anew, as on a machine too busy to keep its lease; "+
			"each start counts",
			now-before)
	}
}

// The objects of each team. Its disks have a size of their own, so that no two classes have the same instance types.
const (
	memoryClass = `
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: NAME}
spec:
  role: KarpenterNodeRole-lab
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: lab}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: lab}}]
  blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: GIBGi, volumeType: gp3}}]
`
	memoryPool = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: NAME}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: NAME}
      requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}]
`
	memoryPods = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: default}
spec:
  replicas: PODS
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      terminationGracePeriodSeconds: 0
      nodeSelector: {karpenter.sh/nodepool: NAME}
      containers: [{name: pause, image: registry.k8s.io/pause:3.10, resources: {requests: {cpu: "1"}}}]
`
)

func (w *world) runningPods() (n int) {
	w.Helper()
	list := &corev1.PodList{}
	if err := w.c.List(w.Context(), list, client.InNamespace("default")); err != nil {
		w.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].Status.Phase == corev1.PodRunning {
			n++
		}
	}
	return n
}

// restarts are how often the controller's container was started anew.
func (w *world) restarts() (n int) {
	w.Helper()
	pods := w.controllers()
	for i := range pods {
		for _, c := range pods[i].Status.ContainerStatuses {
			n += int(c.RestartCount)
		}
	}
	return n
}

// peakOfController is the most memory that the chart's process has had resident, in bytes, as Linux counts it.
func (w *world) peakOfController() (peak int) {
	w.Helper()
	for _, status := range w.processes() {
		_, line, _ := strings.Cut(status, "\nVmHWM:")
		if fields := strings.Fields(line); len(fields) > 1 {
			kib, _ := strconv.Atoi(fields[0])
			peak = max(peak, kib<<10)
		}
	}
	return peak
}

// processes are the chart's, each as /proc/PID/status describes it.
func (w *world) processes() (out []string) {
	w.Helper()
	path, err := controller()
	if err != nil {
		w.Fatal(err)
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(processes) == 0 {
		w.Fatalf("this test reads /proc, as Linux has it: %v", err)
	}
	for _, process := range processes {
		if exe, err := os.Readlink(filepath.Join(process, "exe")); err != nil || exe != path {
			continue // of somebody else, or gone
		}
		if status, err := os.ReadFile(filepath.Join(process, "status")); err == nil {
			out = append(out, string(status))
		}
	}
	return out
}
