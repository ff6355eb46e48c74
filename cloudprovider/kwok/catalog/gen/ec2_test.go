package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const source = `[
	{"instance_type": "m5.large", "vCPU": 2, "memory": 8.0, "arch": ["x86_64"], "generation": "current",
	 "vpc": {"ips_per_eni": 10, "max_enis": 3}, "availability_zones": {"us-west-2": ["usw2-az3", "usw2-az1"]},
	 "pricing": {"us-west-2": {"linux": {"ondemand": "0.0960", "spot": ["0.036600", "0.047200"]}}}},
	{"instance_type": "g5.xlarge", "vCPU": 4, "memory": 16.0, "arch": ["x86_64"], "generation": "current", "GPU": 1,
	 "GPU_model": "NVIDIA A10G",
	 "storage": {"devices": 2, "size": 125}, "vpc": {"ips_per_eni": 15, "max_enis": 4},
	  "availability_zones": {"us-west-2": ["usw2-az1"]},
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
	if _, err := write(&out, append(instances, instances[0])); err == nil || !strings.Contains(err.Error(),
		"m5.large appears twice") {
		t.Errorf("error %v for a type that is there twice", err)
	}
}

// TestNewer: a type that has no zones in the newer file is newer than the data, and is sold if it has a price.
func TestNewer(t *testing.T) {
	dir := t.TempDir()
	files := newerFiles{types: filepath.Join(dir, "types.csv"), prices: filepath.Join(dir, "prices.txt")}
	types := "name,vcpu,memory_mib,arch,previous,gpus,gpu_model,disks,disk_gb,max_enis,ips_per_eni,zones\n" +
		"m5.large,2,8192,x86_64,,,,,,3,10,usw2=13\nm9gd.large,2,8192,arm64,,,,1,118,3,10,\ng9.large,2,8192,x86_64,,1,NVIDIA X,,,3,10,\n"
	prices := "# made\n@eu-west-1 2026-07-06\ng9.large,1,\n@us-east-1 " +
		"2026-07-06\nm5.large,0.096,0.04\nm9gd.large,0.1,\n@us-west-2 2025-05-28\nm5.large,0.096,\n"
	for path, text := range map[string]string{files.types: types, files.prices: prices} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	instances, err := files.read()
	if err != nil || len(instances) != 1 {
		t.Fatalf("%v, %v; want m9gd.large", instances, err)
	}
	var out bytes.Buffer
	if _, err := write(&out, instances); err != nil {
		t.Fatal(err)
	}
	_, row, _ := strings.Cut(out.String(), "\n")
	if want := "m9gd.large,2,8192,arm64,,,118,3,10,abcd,0.1,0.04 0.04 0.04 0.04\n"; row != want {
		t.Errorf("got  %s\nwant %s", row, want)
	}
	if _, err := (newerFiles{}).read(); err == nil {
		t.Error("no files are no error")
	}
}
