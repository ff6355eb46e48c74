package process

import (
	"os"
	"testing"
)

func TestMegabytes(t *testing.T) {
	cases := []struct {
		name, status string
		want         float64
		fails        bool
	}{
		{"found", "Name:\tx\nVmPeak:\t 9999 kB\nVmHWM:\t   51200 kB\nVmRSS:\t 100 kB\n", 50, false},
		{"a process without memory", "Name:\tkthreadd\nState:\tS\n", 0, true},
		{"another unit", "VmHWM:\t 5 mB\n", 0, true},
		{"no number", "VmHWM:\t lots kB\n", 0, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := megabytes(c.status, "VmHWM")
			if got != c.want || (err != nil) != c.fails {
				t.Errorf("got %v, %v; want %v", got, err, c.want)
			}
		})
	}
}

func TestCPUSeconds(t *testing.T) {
	cases := []struct {
		name, stat string
		want       float64
		fails      bool
	}{
		{"plain", "7 (tenon) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 9 9 20 0 1 0 100 0 0", 3, false},
		{"a name with spaces and parentheses", "7 (a) b (c) S 1 7 7 0 -1 4194560 100 0 0 0 100 25 9 9 20 0",
			1.25, false},
		{"cut off", "7 (tenon) S 1 7", 0, true},
		{"no name", "7 S 1 7 7 0 -1 4194560 100 0 0 0 250 50", 0, true},
		{"no number", "7 (tenon) S 1 7 7 0 -1 4194560 100 0 0 0 x 50 9", 0, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := cpuSeconds(c.stat)
			if got != c.want || (err != nil) != c.fails {
				t.Errorf("got %v, %v; want %v", got, err, c.want)
			}
		})
	}
}

func TestUsageOfThisProcess(t *testing.T) {
	u, err := usageOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if u.Megabytes < 1 || u.PeakMegabytes < u.Megabytes || u.PeakMegabytes > 10_000 || u.CPUSeconds < 0 ||
		u.CPUSeconds > 1000 {
		t.Errorf("not believable for a test: %+v", u)
	}
}

func TestParseLoad(t *testing.T) {
	if got, err := parseLoad("6.43 4.93 3.65 2/900 4242\n"); err != nil || got != 6.43 {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := parseLoad(""); err == nil {
		t.Errorf("got %v from nothing", got)
	}
}
