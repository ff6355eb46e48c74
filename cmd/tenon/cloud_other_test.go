package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
	ec2, simulated := cluster.ClassRef{Group: awsv1.Group, Kind: awsv1.Kind}, cluster.ClassRef{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind}
	for _, tc := range []struct {
		provider string
		classes  int
		warned   bool
		hint     cluster.ClassRef
		words    string
	}{
		{cloudKwok, 1, true, ec2, "runs with --cloud-provider=kwok; give it --cluster-name (CLUSTER_NAME)"},
		{cloudKwok, 0, false, ec2, "--cluster-name (CLUSTER_NAME)"},
		{cloudAWS, 1, false, simulated, "--cloud-provider=kwok"},
	} {
		made := fake.NewClientBuilder().WithScheme(scheme)
		if tc.classes > 0 {
			made = made.WithObjects(class)
		}
		var out bytes.Buffer
		log := funcr.New(func(_, text string) { fmt.Fprintln(&out, text) }, funcr.Options{})
		o := &options{cloudProvider: tc.provider}
		tellOtherCloud(t.Context(), made.Build(), o, log)
		if got := strings.Contains(out.String(), "--cluster-name (CLUSTER_NAME) selects aws"); got != tc.warned {
			t.Errorf("%+v: the log has %q", tc, out.String())
		}
		hints := otherClouds(o)
		if len(hints) != 1 || !strings.Contains(hints[tc.hint], tc.words) {
			t.Errorf("%+v: the hints are %v", tc, hints)
		}
	}
	// A cluster that does not know the kind is none of those.
	var out bytes.Buffer
	log := funcr.New(func(_, text string) { fmt.Fprintln(&out, text) }, funcr.Options{})
	tellOtherCloud(t.Context(), fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build(), &options{cloudProvider: cloudKwok}, log)
	if out.Len() > 0 {
		t.Errorf("the log has %q", out.String())
	}
}
