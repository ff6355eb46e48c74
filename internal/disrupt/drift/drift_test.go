package drift

import (
	"fmt"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
)

// Hashes of templates are written where there are none that can be compared.
func TestWhatIsStamped(t *testing.T) {
	pool := "stamp-pool/default"
	cases := []struct {
		name   string
		change func(h *disrupttest.House)
		want   string
	}{
		{"all is written", func(h *disrupttest.House) {}, ""},
		{"the pool has another hash", func(h *disrupttest.House) { h.Pool.WrittenHash.Hash = "1" }, pool},
		{"the pool has another version", func(h *disrupttest.House) { h.Pool.WrittenHash.Version = "v2" }, pool},
		{"the pool is being deleted", func(h *disrupttest.House) {
			h.Pool.Deleting, h.Pool.WrittenHash.Hash, h.Claim.Hash = true, "1", ""
		}, ""},
		{"the template can't be read", func(h *disrupttest.House) { h.Pool.Hash, h.Claim.Hash = "", "" }, ""},
		{"a claim has another hash", func(h *disrupttest.House) { h.Claim.Hash = "1" }, ""},
		{"a claim has none", func(h *disrupttest.House) { h.Claim.Hash = "" }, "c=2"},
		{"a claim has none, but a reason to drift", func(h *disrupttest.House) {
			h.Claim.Hash = ""
			h.Say(cluster.Drifted, PoolDrifted)
		}, "c=2"},
		{"a claim has one of another version", func(h *disrupttest.House) {
			h.Claim.Hash, h.Claim.HashVersion = "1", "v2"
		}, "c=2"},
		{"a claim of another version that has drifted from the template", func(h *disrupttest.House) {
			h.Claim.Hash, h.Claim.HashVersion = "1", "v2"
			h.Say(cluster.Drifted, PoolDrifted)
		}, "c=1"},
		{"a claim of another version that has drifted otherwise", func(h *disrupttest.House) {
			h.Claim.Hash, h.Claim.HashVersion = "1", "v2"
			h.Say(cluster.Drifted, "AMIDrift")
		}, "c=2"},
		{"a claim of another version that is no longer drifted", func(h *disrupttest.House) {
			h.Claim.Hash, h.Claim.HashVersion = "1", "v2"
			h.Claim.Conditions = append(h.Claim.Conditions, cluster.Condition{Type: cluster.Drifted,
				Status: cluster.False, Reason: PoolDrifted})
		}, "c=2"},
		{"a claim that is only expected", func(h *disrupttest.House) { h.Claim.Hash, h.Claim.Expected = "", true }, ""},
		{"a claim on its way out", func(h *disrupttest.House) { h.Claim.Hash, h.Claim.Deleting = "", h.S.Now }, ""},
	}
	for _, c := range cases {
		h := disrupttest.NewHouse()
		h.Pool.Hash, h.Pool.HashVersion, h.Claim.Hash, h.Claim.HashVersion = "2", "v3", "2", "v3"
		h.Pool.WrittenHash = cluster.TemplateHash{Hash: "2", Version: "v3"}
		c.change(h)
		got := ""
		for _, cmd := range TemplateHashes(h.S.Seal()) {
			switch cmd := cmd.(type) {
			case command.WritePoolHash:
				got += cmd.Key()
			case command.WriteClaimHash:
				got += fmt.Sprintf("%s=%s", cmd.Claim, cmd.Hash)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
