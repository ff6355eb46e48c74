package join

import (
	"encoding/base64"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
)

// The provider writes user data, the simulated machines read it, and neither knows the other's code. Here they meet.
func TestTheProvidersUserDataIsUnderstood(t *testing.T) {
	for name, image := range map[string]system{
		"AL2": al2, "AL2023": al2023, "Bottlerocket": bottlerocket, "Windows2019": windows, "Windows2022": windows,
		"Windows2025": windows,
	} {
		t.Run(name, func(t *testing.T) {
			f, ok := family.Named(name)
			if !ok {
				t.Fatal("there is no such family")
			}
			text, err := f.UserData(family.Node{
				Cluster: family.Cluster{Name: "lab", Endpoint: "https://api.example", CABundle: "Y2E=",
					ServiceCIDR: "10.100.0.0/16", DNS: "10.100.0.10"},
				MaxPods: 42, Labels: map[string]string{"karpenter.sh/capacity-type": "spot", "team": "a",
					"kubernetes.io/os": "linux"},
				Taints:    []corev1.Taint{{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule}},
				RAID0:     image == al2 || image == al2023,
				ImageName: "bottlerocket-aws-k8s-1.33-x86_64-v1.46.0",
			})
			if err != nil {
				t.Fatal(err)
			}
			encoded, err := f.Encode(text)
			if err != nil {
				t.Fatal(err)
			}
			data, err := base64.StdEncoding.DecodeString(encoded)
			if err != nil {
				t.Fatal(err)
			}
			got, err := read(data, image)
			if err != nil {
				t.Fatalf("%v in\n%s", err, text)
			}
			if got.Cluster != "lab" || got.MaxPods != 42 || got.Labels["karpenter.sh/capacity-type"] != "spot" ||
				got.Labels["team"] != "a" ||
				got.RAID0 != (image == al2 || image == al2023) {
				t.Errorf("understood %+v of\n%s", got, text)
			}
			// Every taint is in the user data, so registration must not write one again that an agent has taken off by
			// then.
			if got.Labels["karpenter.sh/do-not-sync-taints"] != "true" {
				t.Errorf("the label do-not-sync-taints was not understood in\n%s", text)
			}
			want := map[string]corev1.TaintEffect{"karpenter.sh/unregistered": corev1.TaintEffectNoExecute,
				"team": corev1.TaintEffectNoSchedule}
			for _, taint := range got.Taints {
				if want[taint.Key] != taint.Effect {
					t.Errorf("understood the taint %+v", taint)
				}
				delete(want, taint.Key)
			}
			if len(want) > 0 {
				t.Errorf("the taints %v were not understood in\n%s", want, text)
			}
		})
	}
}
