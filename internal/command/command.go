// Package command is what a plan can ask for: plain values with a stable key. Carrying one out twice is the same as
// carrying it out once.
//
// Floor 1: pure. It says what should happen; actuate knows how.
package command

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/reason"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// Command is one act. The set is closed: only the types of this file implement it.
type Command interface {
	// Key is the same for the same act, so that an act under way is not begun again.
	Key() string
	// Label is what metrics call the command, whatever its type is called.
	Label() string
}

// All has one of each command.
func All() []Command {
	return []Command{CreateClaim{}, Nominate{}, Bind{}, LaunchInstance{}, Register{}, Open{}, Initialize{}, Fence{},
		Unfence{}, DeleteClaim{}, DeleteNode{}, Evict{}, Terminate{}, Release{}, Adopt{}, SetPool{}, SetClaim{},
		WritePoolHash{}, WriteClaimHash{}}
}

// IsStatusUpdate reports whether a command only writes down what has been seen: nobody waits for it as for an act.
func IsStatusUpdate(c Command) bool {
	switch c.(type) {
	case SetClaim, SetPool, WriteClaimHash, WritePoolHash:
		return true
	}
	return false
}

// CreateClaim asks for one new node by creating a NodeClaim.
type CreateClaim struct {
	// Name derives from the content, so that a second try after a crash is the same claim.
	Name    string
	Pool    string
	PoolUID string
	// Generation of the pool that the claim was planned from.
	Generation int64
	Template   cluster.Template
	// Labels that the node will carry, template labels included; Requirements what it may be.
	Labels       cluster.Labels
	Requirements require.Set
	Requests     resource.Vector
	Seats        []cluster.Seat
	// MadeFor says for whom the node is made, and which try it is.
	MadeFor []cluster.MadeFor
	// Slot of a static pool that the node is made for.
	Slot cluster.Slot
	// Pods that the node is made for.
	Pods   []*cluster.Pod
	Reason Reason
	// Relaxed says that the pool's minValues were lowered to what there is.
	Relaxed bool
	// Price of the cheapest offering that meets the requirements: what the planner expects to pay per hour.
	Price float64
	// Estimated says that nobody has told that price: it is inferred from what other types cost.
	Estimated bool
	// Replaces is the disruption that the node is made for, if it is.
	Replaces string
	// ConfirmOnly says that nobody needs the claim any more, after a try of which nobody knows what came of it: it is
	// not made, but looked for.
	ConfirmOnly bool
	// DriftReplacement is what the claim says if it is made in place of a drifted node.
	DriftReplacement cluster.DriftReplacement
}

// Nominate tells kube-scheduler on which node a pod is expected, so that it puts it there and keeps the room for it.
type Nominate struct {
	Pod, UID, Namespace, Name string
	Node                      string
}

// Bind puts a pod on a node without waiting for kube-scheduler: its kubelet can begin before the node is ready.
type Bind struct {
	Pod, UID, Namespace, Name string
	Node                      string
}

// LaunchInstance has the cloud run an instance for a claim.
type LaunchInstance struct{ Claim, UID string }

// Register joins a node to its claim: labels, taints, finalizer and owner are put in place and the node is opened.
type Register struct {
	Claim, Node string
	// Untainted says that the node came without the taint that keeps pods off until now: some may be there already.
	Untainted bool
	// KeepFor is the move for which the node is kept, if it is: kube-scheduler may not use it until the move's nodes
	// go.
	KeepFor string
}

// Open lets kube-scheduler use a node that was kept for a move.
type Open struct{ Claim, Node string }

// Initialize marks a node that is ready for all its pods.
type Initialize struct{ Claim, Node string }

// Fence keeps new pods off a node that is to go, before anything that can't be undone is done.
type Fence struct {
	Claim, Node string
	// UID of the claim: a namesake is left alone. Empty for anybody's.
	UID    string
	Reason Reason
	// Move is the disruption that the node goes in; empty if it goes alone and nothing takes its place.
	Move string
}

// Unfence opens a node again that turned out to be needed. UID is as with Fence.
type Unfence struct {
	Claim, UID, Node string
	// RestUntil is written to the claim if it is set: until then the node is not tried again. Rests is how often that
	// has happened now.
	RestUntil time.Time
	Rests     int
	// ForSaving says that the rest is only from being fenced to save money: the node was, and is needed.
	ForSaving bool
	// BlockReason says why the node stays; empty if it is just needed.
	BlockReason string
}

// DeleteClaim begins the end of a node.
type DeleteClaim struct {
	Claim, UID, Node string
	Reason           Reason
	Text             reason.Text
	// Missing is the node of instance ProviderID whose absence is the reason: if the API server has it after all, the
	// claim stays.
	Missing, ProviderID string
	// Deadline is written to the claim first if it is set: by then it must be gone.
	Deadline time.Time
	// Condition is the condition of the node that called for it, if one did.
	Condition string
	// Departure names those that go together for each other's sake: all of them or none. Empty for one that goes by
	// itself.
	Departure string
}

// DeleteNode begins the end of a node that has lost its claim. ProviderID is its machine's.
type DeleteNode struct {
	Node, UID  string
	ProviderID string
	Reason     Reason
	Text       reason.Text
}

// Evict asks a pod to leave its node.
type Evict struct {
	Pod, UID, Namespace, Name string
	Node                      string
	// Owner is the UID of the workload that the pod is of, if it is of one.
	Owner string
	// Delete deletes the pod instead of asking: its node's time is up. Grace is what the pod still gets.
	Delete bool
	Grace  time.Duration
}

// Terminate has the cloud end the instance of a claim, of a node whose claim is lost, or one that has neither. Without
// a ProviderID the claim was never seen launched; the cloud is asked whether it runs an instance for it all the same.
// UID is that of the claim that the instance was launched for; without a Claim it is what the cloud's list said.
type Terminate struct {
	Claim, UID, Node, ProviderID string
	// Drained says that the node has been waited for: right before the end the API server is asked whether a pod is on
	// it that is not among StayingPods, the UIDs of those that need not leave. What we remember of pods may be old.
	Drained     bool
	StayingPods []string
	// DuplicateNodes are other nodes that say they are the instance; the same goes for them.
	DuplicateNodes []string
	// Missing is the claim's node that we don't know of: if the API server does, the instance is not ended yet.
	Missing string
}

// Release lets go of what remains once the instance is gone: the node and the claim lose their finalizers.
type Release struct {
	Claim, UID    string
	Node, NodeUID string
	Reason        Reason
	// ProviderID of the instance that is gone: a claim that has another by now is not let go.
	ProviderID string
}

// Adopt puts our finalizer on a claim that somebody else created, before an instance is launched for it.
type Adopt struct{ Claim string }

// PoolStatus is the part of a NodePool's status that a plan keeps up to date.
type PoolStatus struct {
	Nodes           int64
	Resources       resource.Vector
	ClassGeneration int64
	Conditions      []Condition
}

// Condition is a status condition that is to be written.
type Condition struct {
	Type   string
	Status cluster.ConditionStatus
	Reason string
	Text   reason.Text
	// Generation of the object that the condition was made for.
	Generation int64
}

// SetPool writes a pool's status.
type SetPool struct {
	Pool   string
	Status PoolStatus
}

// WritePoolHash writes the hash of a pool's template on the pool. A namesake, with another UID, is left alone.
type WritePoolHash struct{ Pool, UID, Hash, Version string }

// WriteClaimHash writes a hash on a claim that has none, or one that was computed in another way: the claim counts as
// made from the template as it is now.
type WriteClaimHash struct{ Claim, UID, Hash, Version string }

// SetClaim writes conditions of a claim, the time of its last pod event and the time by which it must be gone, where
// they are set.
type SetClaim struct {
	Claim        string
	Conditions   []Condition
	LastPodEvent time.Time
	Deadline     time.Time
}

func (c CreateClaim) Key() string    { return "create/" + c.Name }
func (c Nominate) Key() string       { return "nominate/" + c.UID }
func (c Bind) Key() string           { return "bind/" + c.UID }
func (c DeleteNode) Key() string     { return "delete-node/" + c.Node }
func (c LaunchInstance) Key() string { return "launch/" + c.Claim }
func (c Register) Key() string       { return "register/" + c.Claim }
func (c Initialize) Key() string     { return "initialize/" + c.Claim }
func (c Open) Key() string           { return "open/" + c.Node }
func (c Fence) Key() string          { return "fence/" + c.Node }
func (c Unfence) Key() string        { return "unfence/" + c.Node }
func (c DeleteClaim) Key() string    { return "delete/" + c.Claim }
func (c Evict) Key() string {
	if c.Delete { // a refused request must not hold up the last call
		return "delete-pod/" + c.UID
	}
	return "evict/" + c.UID
}
func (c Terminate) Key() string { return "terminate/" + c.Claim + "/" + c.ProviderID + "/" + c.Node }
func (c Release) Key() string {
	if c.Claim != "" {
		return "release/" + c.Claim
	}
	return "release/node/" + c.Node
}
func (c Adopt) Key() string          { return "adopt/" + c.Claim }
func (c SetPool) Key() string        { return "pool/" + c.Pool }
func (c WritePoolHash) Key() string  { return "stamp-pool/" + c.Pool }
func (c WriteClaimHash) Key() string { return "stamp-claim/" + c.Claim }
func (c SetClaim) Key() string       { return "claim/" + c.Claim }

func (CreateClaim) Label() string    { return "createclaim" }
func (Nominate) Label() string       { return "nominate" }
func (Bind) Label() string           { return "bind" }
func (DeleteNode) Label() string     { return "deletenode" }
func (LaunchInstance) Label() string { return "launchinstance" }
func (Register) Label() string       { return "register" }
func (Initialize) Label() string     { return "initialize" }
func (Open) Label() string           { return "open" }
func (Fence) Label() string          { return "fence" }
func (Unfence) Label() string        { return "unfence" }
func (DeleteClaim) Label() string    { return "deleteclaim" }
func (Evict) Label() string          { return "evict" }
func (Terminate) Label() string      { return "terminate" }
func (Release) Label() string        { return "release" }
func (Adopt) Label() string          { return "adopt" }
func (SetPool) Label() string        { return "setpool" }
func (SetClaim) Label() string       { return "setclaim" }
func (WritePoolHash) Label() string  { return "writepoolhash" }
func (WriteClaimHash) Label() string { return "writeclaimhash" }

// Reason says why something was done, in the words of metrics and conditions.
type Reason string

// The reasons of the contract, and the ones that only the log tells.
const (
	Provisioned          Reason = "provisioned"
	Empty                Reason = "Empty"
	Requested            Reason = "Requested" // somebody deleted the node or the claim
	InsufficientCapacity Reason = "InsufficientCapacity"
	ClassNotReady        Reason = "NodeClassNotReady"
	LaunchTimeout        Reason = "LaunchTimeout"
	RegistrationTimeout  Reason = "RegistrationTimeout"
	NodeMissing          Reason = "NodeMissing"
	// InstanceMissing: the cloud no longer runs the claim's instance. ClaimMissing: nobody claims the node or instance.
	InstanceMissing       Reason = "InstanceMissing"
	ClaimMissing          Reason = "ClaimMissing"
	InitializationTimeout Reason = "InitializationTimeout"
	Expired               Reason = "Expired"
	Underutilized         Reason = "Underutilized"
	Drifted               Reason = "Drifted"
	Unhealthy             Reason = "Unhealthy"
	// Interrupted: the cloud takes the instance away, or it has failed.
	Interrupted Reason = "Interrupted"
	// LaunchesRefused: other launches of the pool have failed, and this one would too.
	LaunchesRefused Reason = "LaunchesRefused"
	// ScaledDown: a static pool wants fewer nodes.
	ScaledDown Reason = "ScaledDown"
	// Invalid: a claim that a person wrote can never be launched.
	Invalid Reason = "ValidationFailed"
)

// Outcome is what became of a command. It goes back through ingest, which is the only way back.
type Outcome struct {
	Command Command
	At      time.Time
	// Err is nil if the act is done. A failed act is tried again later unless the next plan no longer asks for it.
	Err error
	// Writes are the objects that the act changed; the command counts as under way until the watch has shown them.
	Writes []Write
	// Refused says that the cloud won't launch the instance, Refusal in which way; Unavailable are the offerings that
	// it named, which it may also do when it has launched the instance after all.
	Refused     bool
	Refusal     Refusal
	Unavailable []UnavailableOffering
	// InstanceGone says that the cloud no longer knows the instance that a Terminate was about.
	InstanceGone bool
	// Unsure says that the act may have been done although it failed, and must be asked for again until that is known.
	Unsure bool
	// RetryAfter asks for another try after this time although nothing failed: the act takes a while.
	RetryAfter time.Duration
}

// Write names an object and the version that a write gave it. Version is empty if the object was deleted, which may
// take effect later; Gone says that nothing holds it any more. Created says that it was not there before.
type Write struct {
	Kind, Name, Version string
	Created, Gone       bool
	// Nominated says that a pod was told which node it is for, Node, or that it is for none; Bound that it was bound.
	// What counts is not the version, which changes for many reasons, but whether the pod says so.
	Nominated, Bound bool
	Node             string
}

// The kinds of objects that are written. Pods are named by UID, the others by name.
const (
	KindClaim = "NodeClaim"
	KindNode  = "Node"
	KindPool  = "NodePool"
	KindPod   = "Pod"
)

// Refusal is what the cloud said when it would not launch an instance.
type Refusal struct {
	Reason  Reason
	Message string
}

// UnavailableOffering names an offering that could not be bought. An empty Type or Zone stands for all; Within, if it
// is not empty, is a value that the offering's labels have. Why is what people could do about it, if anything; it does
// not tell offerings apart.
type UnavailableOffering struct{ Type, Zone, CapacityType, Within, Advice string }
