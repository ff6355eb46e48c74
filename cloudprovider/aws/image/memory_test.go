package image_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/image"
)

var errNoVersion = errors.New("the API server does not answer")

func noVersion(context.Context) (string, error) { return "", errNoVersion }

// asked counts the calls since the last time.
func (w *world) asked() (describes, reads int) {
	describes, reads = len(w.described), len(w.read)
	w.described, w.read = nil, nil
	return describes, reads
}

func (w *world) expectCalls(t *testing.T, what string, describes, reads int) {
	t.Helper()
	if d, r := w.asked(); d != describes || r != reads {
		t.Errorf("%s: %d calls of DescribeImages and %d of GetParameter, want %d and %d", what, d, r, describes, reads)
	}
}

func TestLatestMovesOn(t *testing.T) {
	w := newWorld()
	w.eks("v1", 3)
	f, c := w.finder(), alias("al2023@latest")
	first := find(t, f, c)
	w.expectCalls(t, "at first", 1, 5)
	find(t, f, c)
	w.expectCalls(t, "right after", 0, 0)

	w.eks("v2", 0)
	w.now = w.now.Add(time.Minute)
	if got := find(t, f, c); got != first {
		t.Errorf("after a minute: have\n%s", got)
	}
	w.expectCalls(t, "after a minute", 1, 0)

	w.now = w.now.Add(29 * time.Minute)
	if got := find(t, f, c); !strings.Contains(got, "ami-v20") || strings.Contains(got, "ami-v1") {
		t.Errorf("after half an hour: have\n%s", got)
	}
	w.expectCalls(t, "after half an hour", 1, 5)
}

// Who wants to know sooner says so.
func TestLatestMovesOnSooner(t *testing.T) {
	w := newWorld()
	w.eks("v1", 3)
	o := w.options()
	o.Latest = 5 * time.Minute
	f, c := image.New(o), alias("al2023@latest")
	first := find(t, f, c)
	w.eks("v2", 0)
	w.now = w.now.Add(4 * time.Minute)
	if got := find(t, f, c); got != first {
		t.Errorf("after four minutes: have\n%s", got)
	}
	w.now = w.now.Add(time.Minute)
	if got := find(t, f, c); !strings.Contains(got, "ami-v20") {
		t.Errorf("after five minutes: have\n%s", got)
	}
}

func TestAReleaseStays(t *testing.T) {
	w := newWorld()
	w.eks("v1", 3)
	f, c := w.finder(), alias("al2023@v1")
	first := find(t, f, c)
	w.asked()
	w.eks("v2", 0)
	w.now = w.now.Add(23 * time.Hour)
	if got := find(t, f, c); got != first {
		t.Errorf("have\n%s", got)
	}
	w.expectCalls(t, "within a day", 1, 0)
	w.now = w.now.Add(time.Hour)
	find(t, f, c)
	w.expectCalls(t, "after a day", 1, 5)
}

// A release that is not out yet is found as soon as it is.
func TestAReleaseThatComesLater(t *testing.T) {
	w := newWorld()
	f, c := w.finder(), alias("al2023@v9")
	if _, err := f.Find(t.Context(), c); err == nil {
		t.Fatal("found what is not there")
	}
	w.eks("v9", 0)
	if got := find(t, f, c); !strings.Contains(got, "ami-v90") {
		t.Errorf("have\n%s", got)
	}
}

// An image that is gone comes back under another id; nobody has to wait until the parameter is due.
func TestAnImageThatIsGone(t *testing.T) {
	w := newWorld()
	w.eks("v1", 3)
	w.parameters["/our/image"], w.parameters["/our/other"] = "ami-v10", "soon"
	f := w.finder()
	latest, ours, other := alias("al2023@latest"), class(awsv1.AMISelectorTerm{SSMParameter: "/our/image"}),
		class(awsv1.AMISelectorTerm{SSMParameter: "/our/other"})
	find(t, f, latest)
	w.images, w.now = nil, w.now.Add(2*time.Minute)
	for _, c := range []*awsv1.EC2NodeClass{latest, ours, other} {
		if _, err := f.Find(t.Context(), c); err == nil {
			t.Fatalf("found what is gone: %v", c.Spec.AMISelectorTerms)
		}
	}
	w.eks("v2", 0)
	w.parameters["/our/image"], w.parameters["/our/other"] = "ami-v20", "ami-v20"
	if got := find(t, f, latest); !strings.Contains(got, "ami-v20") {
		t.Errorf("the alias: have\n%s", got)
	}
	expect(t, "the parameter", find(t, f, ours), "ami-v20 amd64")
	expect(t, "the parameter that held none", find(t, f, other), "ami-v20 amd64")
}

// That a variant is missing is remembered for a while, and no longer.
func TestAMissingVariant(t *testing.T) {
	w := newWorld()
	w.eks("v1", 3)
	const neuron = "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/neuron/amazon-eks-node-al2023-x86_64-neuron-1.33-v1/image_id"
	id := w.parameters[neuron]
	delete(w.parameters, neuron)
	f, c := w.finder(), alias("al2023@v1")
	if got := find(t, f, c); strings.Contains(got, id) {
		t.Fatalf("have\n%s", got)
	}
	w.parameters[neuron] = id
	w.asked()
	w.now = w.now.Add(20 * time.Minute)
	find(t, f, c)
	w.expectCalls(t, "after 20 minutes", 1, 0)
	w.now = w.now.Add(10 * time.Minute)
	if got := find(t, f, c); !strings.Contains(got, id) {
		t.Errorf("have\n%s", got)
	}
	w.expectCalls(t, "after half an hour", 1, 1)
}

// While SSM is out of order, what it said last holds for a day; but a lack of permission is told at once.
func TestSSMOutOfOrder(t *testing.T) {
	w := newWorld()
	w.eks("v1", 3)
	f, c := w.finder(), alias("al2023@latest")
	first := find(t, f, c)
	w.failSSM = awsError("SSM", "GetParameter", "InternalServerError")
	w.now = w.now.Add(5 * time.Hour)
	if got := find(t, f, c); got != first {
		t.Errorf("have\n%s", got)
	}
	w.failSSM = awsError("SSM", "GetParameter", "AccessDeniedException")
	w.now = w.now.Add(time.Hour)
	if _, err := f.Find(t.Context(), c); err == nil || !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("no permission: %v", err)
	}
	w.failSSM = awsError("SSM", "GetParameter", "InternalServerError")
	w.now = w.now.Add(18 * time.Hour)
	if _, err := f.Find(t.Context(), c); err == nil {
		t.Error("what SSM said a day ago still holds")
	}
	w.failSSM = nil
	if got := find(t, f, c); got != first {
		t.Errorf("once SSM is back: have\n%s", got)
	}
}

func TestAnUpgradeOfTheCluster(t *testing.T) {
	w := newWorld()
	w.eks("v1", 3)
	f, c := w.finder(), alias("al2023@latest")
	find(t, f, c)
	w.version = "1.34"
	w.eks("v2", 0)
	if got := find(t, f, c); !strings.Contains(got, "ami-v20") {
		t.Errorf("have\n%s", got)
	}
}

func TestForget(t *testing.T) {
	w := newWorld()
	w.eks("v1", 3)
	w.parameters["/our/image"] = "ami-v10"
	f := w.finder()
	latest, ours := alias("al2023@latest"), class(awsv1.AMISelectorTerm{SSMParameter: "/our/image"})
	find(t, f, latest)
	find(t, f, ours)
	w.eks("v2", 0)
	w.parameters["/our/image"] = "ami-v20"
	f.Forget(t.Context(), latest)
	f.Forget(t.Context(), ours)
	if got := find(t, f, latest); !strings.Contains(got, "ami-v20") {
		t.Errorf("the alias: have\n%s", got)
	}
	expect(t, "the parameter", find(t, f, ours), "ami-v20 amd64")
}

// What a caller does to its list is not seen by others, and callers don't hinder each other.
func TestCallersAreApart(t *testing.T) {
	w := newWorld()
	w.eks("v1", 3)
	f, c := w.finder(), alias("al2023@latest")
	want := find(t, f, c)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			images, err := f.Find(context.Background(), c)
			if err != nil || written(images) != want {
				t.Errorf("have %v, %v", images, err)
				return
			}
			images[0].ID = "ami-changed"
			images[0].Requirements[0].Values[0] = "riscv64"
		})
	}
	group.Wait()
	expect(t, "afterwards", find(t, f, c), want)
}
