package kwokcloud

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
)

// The labels are those of the types that the settings name.
func TestLabelsFollowFromTheTypes(t *testing.T) {
	cloud := New()
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	cloud.Settings.Register(f)
	if err := cloud.Settings.Validate(); err != nil {
		t.Fatal(err)
	}
	labels := cloud.Labels()
	if !slices.Contains(labels.WellKnown, kwokv1alpha1.Group+"/instance-family") ||
		!slices.Equal(labels.RestrictedDomains, []string{kwokv1alpha1.Group}) {
		t.Errorf("labels %v", labels)
	}
	none := filepath.Join(t.TempDir(), "none.json")
	if err := f.Parse([]string{"--instance-types-file-path=" + none}); err != nil {
		t.Fatal(err)
	}
	err := cloud.Settings.Validate()
	if err == nil || !strings.Contains(err.Error(), "--instance-types-file-path") ||
		!strings.Contains(err.Error(), none) {
		t.Errorf("a file that is not there: %v", err)
	}
}
