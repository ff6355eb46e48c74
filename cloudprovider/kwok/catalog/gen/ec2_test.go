package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

const source = `[
	{"instance_type": "m5.large", "vCPU": 2, "memory": 8.0, "arch": ["x86_64"], "generation": "current",
	 "vpc": {"ips_per_eni": 10, "max_enis": 3}, "availability_zones": {"us-west-2": ["usw2-az3", "usw2-az1"]},
	 "pricing": {"us-west-2": {"linux": {"ondemand": "0.0960", "spot": ["0.036600", "0.047200"]}}}},
	{"instance_type": "g5.xlarge", "vCPU": 4, "memory": 16.0, "arch": ["x86_64"], "generation": "current", "GPU": 1, "GPU_model": "NVIDIA A10G",
	 "storage": {"devices": 2, "size": 125}, "vpc": {"ips_per_eni": 15, "max_enis": 4}, "availability_zones": {"us-west-2": ["usw2-az1"]},
	 "pricing": {"us-west-2": {"linux": {"ondemand": "1.006"}}}},
	{"instance_type": "old.large", "vCPU": 2, "memory": 8.0, "arch": ["x86_64"], "generation": "previous",
	 "vpc": {"ips_per_eni": 10, "max_enis": 3}, "availability_zones": {"us-west-2": ["usw2-az1"]},
	 "pricing": {"us-west-2": {"linux": {"ondemand": "0.1"}}}},
	{"instance_type": "far.large", "vCPU": 2, "memory": 8.0, "arch": ["arm64"], "generation": "current",
	 "vpc": {"ips_per_eni": 10, "max_enis": 3}, "availability_zones": {"eu-west-1": ["euw1-az1"]},
	 "pricing": {"eu-west-1": {"linux": {"ondemand": "0.1"}}}}
]`

func TestWrite(t *testing.T) {
	var instances []instance
	if err := json.Unmarshal([]byte(source), &instances); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	n, err := write(&out, instances)
	if err != nil || n != 2 {
		t.Fatalf("write = %d, %v; want the two that can be bought", n, err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if want := "g5.xlarge,4,16384,amd64,nvidia.com/gpu,1,250,4,15,a,1.006,"; lines[1] != want {
		t.Errorf("got  %s\nwant %s", lines[1], want)
	}
	spotLast := lines[2][strings.LastIndex(lines[2], ",")+1:]
	if want := "m5.large,2,8192,amd64,,,,3,10,ac,0.096,"; !strings.HasPrefix(lines[2], want) {
		t.Errorf("got  %s\nwant %s…", lines[2], want)
	}
	if spotLast != "0.0366 0.0472" && spotLast != "0.0472 0.0366" {
		t.Errorf("spot prices %q, want each of the two in one zone", spotLast)
	}
	if _, err := write(&out, append(instances, instances[0])); err == nil || !strings.Contains(err.Error(), "m5.large appears twice") {
		t.Errorf("error %v for a type that is there twice", err)
	}
}
