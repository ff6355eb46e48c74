package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const data = `[
	{"instance_type": "m5.large", "vCPU": 2, "memory": 8.0, "arch": ["x86_64"], "generation": "current", "physical_processor": "Intel Xeon",
	 "clock_speed_ghz": "Up to 3.1 GHz", "network_performance": "Up to 10 Gigabit", "ipv6_support": true, "placement_group_support": true,
	 "ebs_baseline_bandwidth": 650, "ebs_max_bandwidth": 4750, "ebs_baseline_iops": 3600, "ebs_iops": 18750,
	 "vpc": {"ips_per_eni": 10, "max_enis": 3}, "availability_zones": {"us-west-2": ["usw2-az3", "usw2-az1"], "eu-west-1": ["euw1-az2"]},
	 "pricing": {"us-west-2": {"linux": {"ondemand": "0.0960", "spot": ["0.036600", "0.047200", "0"]}}, "eu-west-1": {"linux": {"ondemand": "0.107"}}, "eu-west-2": {"mswin": {}}}},
	{"instance_type": "g5.xlarge", "vCPU": 4, "memory": 16.5, "arch": ["x86_64"], "generation": "current", "GPU": 1, "GPU_model": "NVIDIA A10G", "GPU_memory": 24,
	 "clock_speed_ghz": null, "storage": {"devices": 2, "size": 125, "ssd": true, "nvme_ssd": true}, "availability_zones": {"us-west-2": ["usw2-az1"]},
	 "pricing": {"us-west-2": {"linux": {"ondemand": "1.006"}}}},
	{"instance_type": "gone.large", "vCPU": 2, "memory": 8.0, "arch": ["x86_64"], "generation": "previous", "availability_zones": {},
	 "pricing": {"us-west-2": {"linux": {"ondemand": "0.2"}}, "us-west-2-lax-1": {"linux": {"ondemand": "0.0"}}}}
]`

func generate(t *testing.T, text string) (prices, types string, err error) {
	t.Helper()
	dir := t.TempDir()
	in, out, other := filepath.Join(dir, "in.json"), filepath.Join(dir, "prices"), filepath.Join(dir, "types")
	if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(in, "2025-05-28", out, other); err != nil {
		return "", "", err
	}
	a, errA := os.ReadFile(out)
	b, errB := os.ReadFile(other)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	return string(a), string(b), nil
}

func TestGenerate(t *testing.T) {
	prices, types, err := generate(t, data)
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(prices, "\n")
	if want := "2025-05-28\n@eu-west-1\nm5.large,0.107,\n@us-west-2\ng5.xlarge,1.006,\ngone.large,0.2,\nm5.large,0.096,0.0366 0.0472\n"; body != want {
		t.Errorf("prices\n got %q\nwant %q", body, want)
	}
	lines := strings.Split(strings.TrimSpace(types), "\n")
	want := []string{
		strings.Join(columns(), ","),
		"g5.xlarge,4,16896,x86_64,,,,,,,,1,NVIDIA A10G,24,,,,,,2,125,ssd-nvme,,,usw2=1",
		"m5.large,2,8192,x86_64,,,Intel Xeon,3100,Up to 10 Gigabit,1,1,,,,,650,3600,4750,18750,,,,3,10,euw1=2 usw2=13",
	}
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want a header and the two types that are sold:\n%s", len(lines), types)
	}
	for i := range want {
		if lines[i] != want[i] {
			t.Errorf("line %d\n got %s\nwant %s", i, lines[i], want[i])
		}
	}
	again, _, _ := generate(t, data)
	if again != prices {
		t.Error("the same source gives another file")
	}
}

func TestGenerateRefuses(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"nothing":        {`[]`, "no prices"},
		"not JSON":       {`{`, "parsing"},
		"a type twice":   {strings.Replace(data, `"g5.xlarge"`, `"m5.large"`, 1), "m5.large appears twice"},
		"a strange zone": {strings.Replace(data, "usw2-az3", "us-west-2c", 1), `zone id "us-west-2c"`},
	} {
		if _, _, err := generate(t, test.text); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
	if err := run("", "", "", ""); err == nil {
		t.Error("no output files are no error")
	}
}

func TestVersionDate(t *testing.T) {
	if date, err := versionDate("v0.0.0-20250528091325-32acf84f42eb"); err != nil || date != "2025-05-28" {
		t.Errorf("date %q, %v", date, err)
	}
	if _, err := versionDate("v1.2.3"); err == nil {
		t.Error("a version without a date is no error")
	}
}

func TestWriteFileSaysWhere(t *testing.T) {
	err := writeFile(filepath.Join(t.TempDir(), "no", "such", "folder"), &source{date: "2025-05-28"}, writePrices)
	if err == nil {
		t.Error("no error")
	}
	var buf bytes.Buffer
	if _, err := writeTypes(&buf, &source{}); err == nil {
		t.Error("no types are no error")
	}
}
