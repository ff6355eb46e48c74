package operator

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	"github.com/tenon-sh/tenon/internal/cluster"
)

// A cluster whose name was forgotten is told about, in the log and to its pools.
func TestTheOtherCloudIsTold(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := awsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	ec2, simulated := cluster.ClassRef{Group: awsv1.Group, Kind: awsv1.Kind},
		cluster.ClassRef{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind}
	for _, tc := range []struct {
		args    string
		classes int
		warned  bool
		hint    cluster.ClassRef
		words   string
	}{
		{"", 1, true, ec2, "--cluster-name (CLUSTER_NAME), which selects aws"},
		{"", 0, false, ec2, "--cluster-name (CLUSTER_NAME), which selects aws"},
		{"--cloud-provider=kwok", 1, true, ec2, "--cluster-name (CLUSTER_NAME) and --cloud-provider=aws"},
		{"--cloud-provider=kwok --cluster-name=prod", 1, true, ec2, "--cloud-provider=aws"},
		{"--cluster-name=prod", 1, false, simulated, "--cloud-provider=kwok"},
	} {
		made := fake.NewClientBuilder().WithScheme(scheme)
		if tc.classes > 0 {
			made = made.WithObjects(class)
		}
		var out bytes.Buffer
		log := funcr.New(func(_, text string) { fmt.Fprintln(&out, text) }, funcr.Options{})
		o, err := parse(t, strings.Fields(tc.args)...)
		if err != nil {
			t.Fatal(err)
		}
		o.cloud.tellOthers(t.Context(), made.Build(), log)
		if got := strings.Contains(out.String(), `"fix"="give the controller `+tc.words+`"`); got != tc.warned ||
			!tc.warned && out.Len() > 0 {
			t.Errorf("%+v: the log has %q", tc, out.String())
		}
		hints := o.cloud.elsewhere()
		if want := "the controller runs with --cloud-provider=" + o.cloud.name + "; give it " +
			tc.words; len(hints) != 1 || hints[tc.hint] != want {
			t.Errorf("%+v: the hints are %v", tc, hints)
		}
	}
	// A cluster that does not know the kind is none of those.
	var out bytes.Buffer
	log := funcr.New(func(_, text string) { fmt.Fprintln(&out, text) }, funcr.Options{})
	o, err := parse(t, "--cloud-provider=kwok")
	if err != nil {
		t.Fatal(err)
	}
	o.cloud.tellOthers(t.Context(), fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build(), log)
	if out.Len() > 0 {
		t.Errorf("the log has %q", out.String())
	}
}

// silent is an API server that never answers.
type silent struct{ client.Reader }

func (silent) List(ctx context.Context, _ client.ObjectList, _ ...client.ListOption) error {
	<-ctx.Done()
	return ctx.Err()
}

// The start does not hang on a question that is only asked for a warning.
func TestTheOtherCloudIsNotWaitedFor(t *testing.T) {
	o, err := parse(t, "--cloud-provider=kwok")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		o.cloud.tellOthers(t.Context(), silent{}, logr.Discard())
		if took := time.Since(began); took != asking {
			t.Errorf("it took %s", took)
		}
	})
}
