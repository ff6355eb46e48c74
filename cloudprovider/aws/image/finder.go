package image

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

// EC2API is what is asked of EC2.
type EC2API interface {
	DescribeImages(ctx context.Context, in *ec2.DescribeImagesInput,
		opts ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error)
}

// DefaultRefresh is how long found images are remembered, unless Options say otherwise.
const DefaultRefresh = time.Minute

// Options are what a Finder works with.
type Options struct {
	EC2 EC2API
	SSM SSMAPI
	// Version is the cluster's version of Kubernetes, such as 1.33: aliases stand for the images of that version.
	Version func(ctx context.Context) (string, error)
	// Refresh is how long found images are remembered; 0 means DefaultRefresh.
	Refresh time.Duration
	// Latest is how long an answer to what @latest or a parameter stands for is believed; 0 means DefaultLatest.
	Latest time.Duration
	// Now tells the time.
	Now func() time.Time
}

// Finder finds images. It is safe for concurrent use.
type Finder struct {
	ec2        EC2API
	version    func(ctx context.Context) (string, error)
	refresh    time.Duration
	now        func() time.Time
	parameters *parameters

	mu    sync.Mutex
	found map[string]finding
}

// finding is what a search gave.
type finding struct {
	images []Image
	at     time.Time
}

// New returns a Finder that has looked at nothing yet.
func New(o Options) *Finder {
	if o.Refresh <= 0 {
		o.Refresh = DefaultRefresh
	}
	if o.Latest <= 0 {
		o.Latest = DefaultLatest
	}
	return &Finder{
		ec2:        o.EC2,
		version:    o.Version,
		refresh:    o.Refresh,
		now:        o.Now,
		parameters: &parameters{api: o.SSM, now: o.Now, latest: o.Latest, seen: map[string]value{}},
		found:      map[string]finding{},
	}
}

// NoMatchError says that nothing is wrong with the search but that it finds no image.
type NoMatchError struct{ Message string }

func (e *NoMatchError) Error() string { return e.Message }

// Find lists the images of a class, of each kind the newest, the newest of all first. It is a NoMatchError if there is
// none.
func (f *Finder) Find(ctx context.Context, class *awsv1.EC2NodeClass) ([]Image, error) {
	key, err := f.key(ctx, class)
	if err != nil {
		return nil, err
	}
	if images, ok := f.recall(key.text); ok {
		return images, nil
	}
	queries, err := f.queries(ctx, class.Spec.AMISelectorTerms, key.version)
	if err != nil {
		return nil, err
	}
	var all []Image
	for _, q := range queries {
		some, err := f.run(ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	images := newest(all)
	if len(images) == 0 {
		return nil, nothing(class.Spec.AMISelectorTerms, key.version)
	}
	f.remember(key.text, images)
	return cloned(images), nil
}

// AMIs is Find in the form of a class's status.
func (f *Finder) AMIs(ctx context.Context, class *awsv1.EC2NodeClass) ([]awsv1.AMI, error) {
	images, err := f.Find(ctx, class)
	return Status(images), err
}

// Forget makes the next search for the class's images a real one, for instance because EC2 no longer knows one of them.
func (f *Finder) Forget(ctx context.Context, class *awsv1.EC2NodeClass) {
	key, err := f.key(ctx, class)
	if err != nil {
		return // without a version nothing was found, so nothing is remembered
	}
	f.mu.Lock()
	delete(f.found, key.text)
	f.mu.Unlock()
	for _, term := range class.Spec.AMISelectorTerms {
		f.parameters.forget(term.SSMParameter)
		if alias, ok := awsv1.ParseAlias(term.Alias); ok {
			for _, p := range publishedAs(alias, key.version) {
				f.parameters.forget(p.parameter)
			}
		}
	}
}

// key is what a search depends on.
type key struct{ text, version string }

func (f *Finder) key(ctx context.Context, class *awsv1.EC2NodeClass) (key, error) {
	var k key
	if _, ok := class.Alias(); ok {
		version, err := f.version(ctx)
		if err != nil {
			return k, fmt.Errorf("learn the version of Kubernetes that the AMI alias is for: %w", err)
		}
		k.version = version
	}
	terms, err := json.Marshal(class.Spec.AMISelectorTerms)
	if err != nil {
		return k, fmt.Errorf("read spec.amiSelectorTerms: %w", err)
	}
	k.text = k.version + " " + string(terms)
	return k, nil
}

func (f *Finder) recall(key string) ([]Image, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	have, ok := f.found[key]
	if !ok || f.now().Sub(have.at) >= f.refresh {
		return nil, false
	}
	return cloned(have.images), true
}

func (f *Finder) remember(key string, images []Image) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	for other, old := range f.found {
		if now.Sub(old.at) >= f.refresh {
			delete(f.found, other)
		}
	}
	f.found[key] = finding{images: images, at: now}
}

// cloned gives the caller a list of its own.
func cloned(images []Image) []Image {
	out := slices.Clone(images)
	for i := range out {
		out[i].Requirements = slices.Clone(out[i].Requirements)
		for j, r := range out[i].Requirements {
			out[i].Requirements[j] = *r.DeepCopy()
		}
	}
	return out
}

// run asks EC2, page by page.
func (f *Finder) run(ctx context.Context, q query) ([]Image, error) {
	var out []Image
	missing := maps.Clone(q.kinds)
	for in := q.input(); ; {
		page, err := f.ec2.DescribeImages(ctx, in)
		if err != nil {
			return nil, fault.Explain("looking for AMIs "+q.about, err)
		}
		for _, raw := range page.Images {
			var kinds []kind
			if raw.ImageId != nil {
				kinds = q.kinds[*raw.ImageId]
				delete(missing, *raw.ImageId)
			}
			out = append(out, read(raw, kinds, f.now())...)
		}
		if page.NextToken == nil || *page.NextToken == "" {
			f.parameters.doubt(slices.Collect(maps.Keys(missing)))
			return out, nil
		}
		in.NextToken = page.NextToken
	}
}
