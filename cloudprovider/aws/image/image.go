// Package image finds the machine images of a node class: by the alias of a family that AWS publishes for EKS, by a
// parameter of Systems Manager, by id, by name and owner, or by tags. Of images that fit the same instance types the
// newest is used.
//
// It reads EC2 and SSM and remembers what it read for a while; it changes nothing.
package image

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Image is a machine image and what an instance type must have to boot it.
type Image struct {
	ID         string
	Name       string
	Created    time.Time
	Deprecated bool
	// Requirements all hold for the labels of an instance type that can boot the image. An image that fits two kinds of
	// types, such as those with GPUs and those with Neuron chips, is listed twice.
	Requirements []corev1.NodeSelectorRequirement
}

// Status is what a class's status says of the images, in the same order.
func Status(images []Image) []awsv1.AMI {
	var out []awsv1.AMI
	for _, i := range images {
		out = append(out, awsv1.AMI{ID: i.ID, Name: i.Name, Deprecated: i.Deprecated, Requirements: i.Requirements})
	}
	return out
}

// For chooses the image that an instance type with these labels boots: the first that fits. A label with several values
// is one that the launch decides.
func For(amis []awsv1.AMI, labels map[string][]string) (awsv1.AMI, bool) {
	for _, ami := range amis {
		if !slices.ContainsFunc(ami.Requirements, func(r corev1.NodeSelectorRequirement) bool {
			return !holds(r, labels[r.Key])
		}) {
			return ami, true
		}
	}
	return awsv1.AMI{}, false
}

// holds tells whether a requirement holds for a label with these values; none means that there is no such label.
func holds(r corev1.NodeSelectorRequirement, values []string) bool {
	switch r.Operator {
	case corev1.NodeSelectorOpIn:
		return slices.ContainsFunc(values, func(v string) bool { return slices.Contains(r.Values, v) })
	case corev1.NodeSelectorOpNotIn:
		return len(values) == 0 || slices.ContainsFunc(values, func(v string) bool {
			return !slices.Contains(r.Values, v)
		})
	case corev1.NodeSelectorOpExists:
		return len(values) > 0
	case corev1.NodeSelectorOpDoesNotExist:
		return len(values) == 0
	default:
		return false
	}
}

// read makes Images of what EC2 says of one image: as many as there are kinds of instance types that it is for, one if
// nothing is known but its architecture, none if Kubernetes does not run on that.
func read(raw ec2types.Image, kinds []kind, now time.Time) []Image {
	arch, ok := architecture(raw.Architecture)
	if !ok || raw.ImageId == nil {
		return nil
	}
	if len(kinds) == 0 {
		kinds = []kind{{}}
	}
	var out []Image
	for _, k := range kinds {
		i := Image{
			ID:      *raw.ImageId,
			Created: moment(raw.CreationDate),
			Requirements: []corev1.NodeSelectorRequirement{{Key: corev1.LabelArchStable,
				Operator: corev1.NodeSelectorOpIn, Values: []string{arch}}},
		}
		if raw.Name != nil {
			i.Name = *raw.Name
		}
		if end := moment(raw.DeprecationTime); !end.IsZero() {
			i.Deprecated = end.Before(now)
		}
		i.Requirements = append(i.Requirements, k.requirements()...)
		out = append(out, i)
	}
	return out
}

func architecture(a ec2types.ArchitectureValues) (string, bool) {
	switch a {
	case ec2types.ArchitectureValuesX8664:
		return v1.ArchitectureAmd64, true
	case ec2types.ArchitectureValuesArm64:
		return v1.ArchitectureArm64, true
	default:
		return "", false
	}
}

// moment reads a time as EC2 writes it; the zero time if there is none.
func moment(text *string) time.Time {
	if text == nil {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, *text)
	if err != nil {
		return time.Time{}
	}
	return at
}

// newest keeps the best image for each set of requirements, the newest first.
func newest(images []Image) []Image {
	best := map[string]Image{}
	for _, i := range images {
		key := fmt.Sprint(i.Requirements)
		if have, ok := best[key]; !ok || better(i, have) {
			best[key] = i
		}
	}
	var out []Image
	for _, i := range best {
		out = append(out, i)
	}
	slices.SortFunc(out, func(a, b Image) int {
		return cmp.Or(b.Created.Compare(a.Created), strings.Compare(a.ID, b.ID),
			strings.Compare(fmt.Sprint(a.Requirements), fmt.Sprint(b.Requirements)))
	})
	return out
}

// better tells whether a is to be used rather than b: one that its owner still recommends, then the newer one.
func better(a, b Image) bool {
	if a.Deprecated != b.Deprecated {
		return b.Deprecated
	}
	return cmp.Or(b.Created.Compare(a.Created), strings.Compare(a.ID, b.ID)) < 0
}
