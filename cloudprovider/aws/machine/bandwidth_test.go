package machine_test

import (
	_ "embed"
	"strconv"
	"strings"
	"testing"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/catalog"
)

//go:embed testdata/bandwidth.txt
var documented string

// TestBandwidthIsAsDocumented compares the label of every type with Amazon's documentation. EC2 is of three minds about
// cards: each tells its own share, or the total of all, or half of its share.
func TestBandwidthIsAsDocumented(t *testing.T) {
	// Where EC2's answer contradicts the documentation, EC2 is believed.
	contradicted := map[string]int64{
		"g7.2xlarge": 40000, "g7.4xlarge": 80000, "g7.8xlarge": 100000, // the documentation is off by one line
		"i8g.metal-48xl": 100000, "i8ge.48xlarge": 300000, "i8ge.metal-48xl": 300000,
	}
	want := documentedBandwidth(t)
	infos, err := catalog.Types()
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for i := range infos {
		name := string(infos[i].InstanceType)
		it, err := shapes().Shape(&infos[i], classOf(awsv1.AMIFamilyAL2))
		if err != nil {
			t.Fatal(err)
		}
		expected, ok := want[name]
		if it == nil || !ok {
			continue
		}
		if other, ok := contradicted[name]; ok {
			expected = other
		}
		label := strings.Join(it.Labels[awsv1.InstanceNetworkBandwidthLabelKey], ",")
		got, err := strconv.ParseInt(label, 10, 64)
		if off := got - expected; err != nil || off*500 > expected || -off*500 > expected {
			// the documentation rounds 28.125 to 28.12
			t.Errorf("%s: %s is %q, documented are %d", name, awsv1.InstanceNetworkBandwidthLabelKey, label, expected)
		}
		compared++
	}
	if compared < 1300 {
		t.Errorf("only %d types were compared", compared)
	}
}

func documentedBandwidth(t *testing.T) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	for line := range strings.Lines(documented) {
		words := strings.Fields(line)
		if words[0] == "#" {
			continue
		}
		for _, entry := range words[1:] {
			size, text, _ := strings.Cut(entry, "=")
			mbit, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				t.Fatalf("%s of %s: %v", entry, words[0], err)
			}
			out[words[0]+"."+size] = mbit
		}
	}
	return out
}
