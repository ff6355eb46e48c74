// Package translate says in the words of v1 what objects of older generations mean: a Provisioner becomes a NodePool,
// and an AWSNodeTemplate or the provider of a Provisioner becomes a NodeClass. What older generations left unsaid is
// said, because the defaults of v1 are others.
//
// It stands on floor 3, because it knows Kubernetes objects; it does no input or output and holds no state. The
// controller (internal/provisioner) and "tenon convert" (internal/convert) use the same functions, so that a manifest
// that was converted gives the objects that are in the cluster already. Every change in meaning is a Note, and what
// can't be said in v1 is a Problem.
package translate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/validate"
)

// Problem is something that can't be said in v1, or is wrong in any version.
type Problem = validate.Problem

// Note is a change in meaning that the author of an object should know.
type Note struct {
	// Field is the path of the field in the old object.
	Field string
	// At is the path of the field in the new object that the note is about; empty if there is none.
	At string
	// Text says what is different, in one sentence.
	Text string
}

// String returns the note as one line.
func (n Note) String() string { return n.Field + ": " + n.Text }

// Clouds that NodeClasses are made for.
const (
	AWS  = "aws"
	KWOK = "kwok"
)

// Target says for which cluster objects are translated.
type Target struct {
	// Cloud is AWS or KWOK.
	Cloud string
	// Cluster is the name of the cluster on AWS. Selectors and the role that an object does not give follow from it. If
	// it is not known, a variable stands for it.
	Cluster string
	// InstanceProfile is the one of nodes whose template names none; empty for the role KarpenterNodeRole-<cluster>.
	InstanceProfile string
}

// Pool is what a Provisioner means.
type Pool struct {
	NodePool *v1.NodePool
	// Class is the NodeClass that the Provisioner needs for itself; nil if it uses one that another object gives.
	Class client.Object
	Notes []Note
}

// longestName is how long the value of a label may be. Nodes carry the names of their pool and class as labels.
const longestName = validation.LabelValueMaxLength

// ClassName is the name of the NodeClass that a Provisioner of this name has for itself. It differs from the name of
// the Provisioner, because an AWSNodeTemplate of that name may well have an EC2NodeClass of that name.
func ClassName(provisioner string) string {
	name := "provisioner-" + provisioner
	if len(name) <= longestName {
		return name
	}
	const kept = 8
	sum := sha256.Sum256([]byte(provisioner))
	return name[:longestName-kept-1] + "-" + hex.EncodeToString(sum[:])[:kept]
}

// seconds is a number of seconds as people write durations.
func seconds(n int64) string {
	const minute, hour = 60, 3600
	switch {
	case n > 0 && n%hour == 0:
		return fmt.Sprintf("%dh", n/hour)
	case n > 0 && n%minute == 0:
		return fmt.Sprintf("%dm", n/minute)
	default:
		return fmt.Sprintf("%ds", n)
	}
}
