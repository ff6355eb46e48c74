package cluster

import (
	"reflect"
	"testing"
)

// Each field of a pod and of its class must be known here: whoever adds one says whether it ties the pod to others.
func TestTiesAreComplete(t *testing.T) {
	ties := map[string]bool{"Rules": true, "Ports": true, "Volumes": true, "ExclusiveVolumes": true,
		"UnboundClaims": true}
	free := map[string]bool{}
	for _, name := range []string{
		// of the class: what it asks of the node alone, or only wishes for
		"Key", "NodeKey", "Requests", "Terms", "OwnTerms", "Tolerations", "Priority", "Preferences", "Unsupported",
		// of the pod
		"UID", "Namespace", "Name", "Class", "Labels", "VolumePlaces", "Owner", "Node", "Nominated",
		"Binding", "Created",
		"FirstSeen", "Unschedulable", "UnschedulableSince", "SchedulerSeen", "OtherScheduler", "Daemon", "Mirror",
		"Finished", "Deleting", "Grace", "DoNotDisrupt", "DoNotDisruptUntil", "Started", "Ready", "Phase", "Limits",
		"Critical", "StaysThroughDrain", "EvictionCost",
	} {
		free[name] = true
	}
	check := func(of reflect.Type, tied func(i int) bool) {
		for i := range of.NumField() {
			name := of.Field(i).Name
			if !ties[name] && !free[name] {
				t.Errorf("%s.%s: say in this test, and in IsTied, whether it ties the pod", of.Name(), name)
			}
			if got := tied(i); got != ties[name] {
				t.Errorf("a pod with %s.%s set: IsTied is %t", of.Name(), name, got)
			}
		}
	}
	check(reflect.TypeFor[PodClass](), func(i int) bool {
		class := &PodClass{}
		setField(reflect.ValueOf(class).Elem().Field(i))
		return class.IsTied() && (&Pod{Class: class}).IsTied()
	})
	check(reflect.TypeFor[Pod](), func(i int) bool {
		pod := &Pod{Class: &PodClass{}}
		if f := reflect.ValueOf(pod).Elem().Field(i); f.Type() != reflect.TypeFor[*PodClass]() {
			setField(f)
		}
		return pod.IsTied()
	})
}

// setField gives a list one element; other kinds of fields can't tie a pod as they are.
func setField(f reflect.Value) {
	if f.Kind() == reflect.Slice {
		f.Set(reflect.MakeSlice(f.Type(), 1, 1))
	}
}
