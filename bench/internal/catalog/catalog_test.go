package catalog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const twoTypes = `[
 {"name": "small", "offerings": [
   {"Price": 0.5, "Available": true, "Requirements": [
     {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
     {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a"]}]},
   {"Price": 0.2, "Available": true, "Requirements": [
     {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a"]},
     {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}]}]},
 {"name": "large", "offerings": [
   {"Price": 4, "Available": false, "Requirements": [
     {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
     {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-b"]}]}]}
]`

func node(instanceType, zone, capacity string) map[string]string {
	return map[string]string{typeLabel: instanceType, zoneLabel: zone, capacityLabel: capacity, "other": "label"}
}

func TestPrice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "types.json")
	if err := os.WriteFile(path, []byte(twoTypes), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		labels map[string]string
		price  float64
	}{
		{node("small", "zone-a", "on-demand"), 0.5},
		{node("small", "zone-a", "spot"), 0.2},
		{node("large", "zone-b", "spot"), 4},
	} {
		got, err := c.Price(want.labels)
		if err != nil || got != want.price {
			t.Errorf("Price(%v) = %v, %v; want %v", want.labels, got, err, want.price)
		}
	}
	for _, unknown := range []map[string]string{
		node("small", "zone-b", "spot"), node("large", "zone-b", "on-demand"), node("medium", "zone-a", "spot"), {},
	} {
		if got, err := c.Price(unknown); err == nil {
			t.Errorf("Price(%v) = %v for something that is not sold", unknown, got)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	cases := []struct{ name, content, want string }{
		{"no JSON", `types:`, "invalid character"},
		{"nothing", `[]`, "there are none"},
		{
			"no zone",
			`[{"name":"a","offerings":[{"Price":1,"Requirements":[{"key":"karpenter.sh/capacity-type",` +
				`"operator":"In","values":["spot"]}]}]}]`,
			"offering 0 of a names no zone",
		},
		{"an open zone", `[{"name":"a","offerings":[{"Price":1,"Requirements":[
			{"key":"karpenter.sh/capacity-type","operator":"In","values":["spot"]},
			{"key":"topology.kubernetes.io/zone","operator":"In","values":["x","y"]}]}]}]`, "offering 0 of a names " +
			"no zone"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := parse([]byte(c.content))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want something with %q", err, c.want)
			}
		})
	}
}

func TestKind(t *testing.T) {
	if got := Kind(node("small", "zone-a", "spot")); got != "small/spot" {
		t.Errorf("got %q", got)
	}
}
