package image_test

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/aws/smithy-go"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/image"
)

// world is as much of EC2 and SSM as images need, with a clock that only the test moves.
type world struct {
	mu         sync.Mutex
	now        time.Time
	version    string
	images     []ec2types.Image
	parameters map[string]string
	// What was asked, in order; and what is answered instead, if it is set.
	described []*ec2.DescribeImagesInput
	read      []string
	failEC2   error
	failSSM   error
	pageSize  int
}

func newWorld() *world {
	return &world{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), version: "1.33", parameters: map[string]string{},
		pageSize: 1000}
}

func (w *world) finder() *image.Finder { return image.New(w.options()) }

func (w *world) options() image.Options {
	return image.Options{
		EC2: w, SSM: w,
		Version: func(context.Context) (string, error) { return w.version, nil },
		Now:     func() time.Time { return w.now },
	}
}

// publish adds an image that was made a number of days ago.
func (w *world) publish(id, name string, days int, change ...func(*ec2types.Image)) {
	i := ec2types.Image{
		ImageId: &id, Name: &name, Architecture: ec2types.ArchitectureValuesX8664, OwnerId: new("111122223333"),
		State:        ec2types.ImageStateAvailable,
		CreationDate: new(w.now.AddDate(0, 0, -days).Format("2006-01-02T15:04:05.000Z")),
	}
	for _, f := range change {
		f(&i)
	}
	w.images = append(w.images, i)
}

func arm64(i *ec2types.Image) { i.Architecture = ec2types.ArchitectureValuesArm64 }

func amazon(i *ec2types.Image) { i.OwnerId, i.ImageOwnerAlias = new("602401143452"), new("amazon") }

func tag(key, value string) func(*ec2types.Image) {
	return func(i *ec2types.Image) { i.Tags = append(i.Tags, ec2types.Tag{Key: &key, Value: &value}) }
}

func deprecatedAt(at time.Time) func(*ec2types.Image) {
	return func(i *ec2types.Image) { i.DeprecationTime = new(at.Format(time.RFC3339)) }
}

// GetParameter answers as SSM does.
func (w *world) GetParameter(_ context.Context, in *ssm.GetParameterInput,
	_ ...func(*ssm.Options)) (*ssm.GetParameterOutput, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read = append(w.read, *in.Name)
	if w.failSSM != nil {
		return nil, w.failSSM
	}
	value, ok := w.parameters[*in.Name]
	if !ok {
		return nil, &ssmtypes.ParameterNotFound{}
	}
	return &ssm.GetParameterOutput{Parameter: &ssmtypes.Parameter{Name: in.Name, Value: &value}}, nil
}

// DescribeImages answers as EC2 does: filters must all hold, values of one are alternatives and may have stars.
func (w *world) DescribeImages(_ context.Context, in *ec2.DescribeImagesInput,
	_ ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := *in
	w.described = append(w.described, &asked)
	if w.failEC2 != nil {
		return nil, w.failEC2
	}
	var all []ec2types.Image
	for _, i := range w.images {
		if w.matches(i, in) {
			all = append(all, i)
		}
	}
	start := 0
	if in.NextToken != nil {
		start, _ = strconv.Atoi(*in.NextToken)
	}
	end := min(len(all), start+w.pageSize)
	out := &ec2.DescribeImagesOutput{Images: all[start:end]}
	if end < len(all) {
		out.NextToken = new(strconv.Itoa(end))
	}
	return out, nil
}

func (w *world) matches(i ec2types.Image, in *ec2.DescribeImagesInput) bool {
	owner := func(o string) bool {
		return o == *i.OwnerId || o == "self" && *i.OwnerId == "111122223333" || i.ImageOwnerAlias != nil &&
			o == *i.ImageOwnerAlias
	}
	if len(in.Owners) > 0 && !slices.ContainsFunc(in.Owners, owner) {
		return false
	}
	tags := map[string]string{}
	for _, t := range i.Tags {
		tags[*t.Key] = *t.Value
	}
	for _, f := range in.Filters {
		have := []string{}
		switch name := *f.Name; {
		case name == "image-id":
			have = append(have, *i.ImageId)
		case name == "name":
			have = append(have, *i.Name)
		case name == "state":
			have = append(have, string(i.State))
		case name == "tag-key":
			have = slices.Collect(maps.Keys(tags))
		case strings.HasPrefix(name, "tag:"):
			if value, ok := tags[strings.TrimPrefix(name, "tag:")]; ok {
				have = append(have, value)
			}
		default:
			panic("no such filter: " + name)
		}
		if !slices.ContainsFunc(have, func(h string) bool {
			return slices.ContainsFunc(f.Values, func(pattern string) bool {
				ok, _ := path.Match(pattern, h)
				return ok
			})
		}) {
			return false
		}
	}
	return true
}

// awsError is an answer of AWS that says no.
func awsError(service, action, code string) error {
	return &smithy.OperationError{ServiceID: service, OperationName: action, Err: &smithy.GenericAPIError{Code: code,
		Message: "no"}}
}

func class(terms ...awsv1.AMISelectorTerm) *awsv1.EC2NodeClass {
	c := &awsv1.EC2NodeClass{}
	c.Spec.AMISelectorTerms = terms
	return c
}

func alias(text string) *awsv1.EC2NodeClass { return class(awsv1.AMISelectorTerm{Alias: text}) }

// written is a list of images in short: ids, a mark if deprecated, and what they are for.
func written(images []image.Image) string {
	var out []string
	for _, i := range images {
		line := i.ID
		if i.Deprecated {
			line += "!"
		}
		for _, r := range i.Requirements {
			key := r.Key[strings.LastIndex(r.Key, "/")+1:]
			switch r.Operator {
			case "Exists":
				line += " " + key
			case "DoesNotExist":
				line += " no-" + key
			default:
				line += " " + strings.Join(r.Values, "|")
			}
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// find fails the test if the search does.
func find(t *testing.T, f *image.Finder, c *awsv1.EC2NodeClass) string {
	t.Helper()
	images, err := f.Find(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return written(images)
}

func expect(t *testing.T, what, have string, want ...string) {
	t.Helper()
	if have != strings.Join(want, "\n") {
		t.Errorf("%s: have\n%s\nwant\n%s", what, have, strings.Join(want, "\n"))
	}
}

// eks publishes an AL2023 release of some days ago under its own parameters, and as the recommended one.
func (w *world) eks(release string, days int) {
	for n, i := range []struct{ arch, variant string }{
		{"x86_64", "standard"}, {"arm64", "standard"}, {"x86_64", "nvidia"}, {"arm64", "nvidia"}, {"x86_64", "neuron"},
	} {
		id := fmt.Sprintf("ami-%s%d", release, n)
		name := fmt.Sprintf("amazon-eks-node-al2023-%s-%s-%s-%s", i.arch, i.variant, w.version, release)
		folder := fmt.Sprintf("/aws/service/eks/optimized-ami/%s/amazon-linux-2023/%s/%s/", w.version,
			i.arch, i.variant)
		w.parameters[folder+"recommended/image_id"] = id
		w.parameters[folder+name+"/image_id"] = id
		w.publish(id, name, days, amazon, func(image *ec2types.Image) {
			if i.arch == "arm64" {
				arm64(image)
			}
		})
	}
}
