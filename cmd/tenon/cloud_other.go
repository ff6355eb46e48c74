package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	"github.com/tenon-sh/tenon/internal/cluster"
)

// otherClouds says, by the kinds of the clouds that are not used, how they would be. A cluster at AWS whose controller was not
// told its name runs with simulated nodes, and the log has to say so of its pools.
func otherClouds(o *options) map[cluster.ClassRef]string {
	out := map[cluster.ClassRef]string{}
	runs := fmt.Sprintf("the controller runs with --cloud-provider=%s", o.cloudProvider)
	if o.cloudProvider != cloudAWS {
		out[cluster.ClassRef{Group: awsv1.Group, Kind: awsv1.Kind}] = runs + "; give it " + toAWS(o)
	}
	if o.cloudProvider != cloudKwok {
		out[cluster.ClassRef{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind}] = runs + "; give it --cloud-provider=" + cloudKwok
	}
	return out
}

// toAWS says what the controller must be given to use AWS. A cloud that was chosen by hand holds whatever the cluster's name says.
func toAWS(o *options) string {
	switch {
	case !o.cloudChosen:
		return "--cluster-name (CLUSTER_NAME), which selects " + cloudAWS
	case o.aws.clusterName == "":
		return "--cluster-name (CLUSTER_NAME) and --cloud-provider=" + cloudAWS
	default:
		return "--cloud-provider=" + cloudAWS
	}
}

// asking bounds the question of tellOtherCloud: the start does not wait for a warning.
const asking = 5 * time.Second

// tellOtherCloud warns at the start that there are EC2NodeClasses although another cloud was chosen. Whether there are is only
// asked for the warning: a cluster that does not know them, or does not tell, is fine.
func tellOtherCloud(ctx context.Context, api client.Reader, o *options, log logr.Logger) {
	if o.cloudProvider == cloudAWS {
		return
	}
	ctx, done := context.WithTimeout(ctx, asking)
	defer done()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(awsv1.GroupVersion().WithKind(awsv1.Kind + "List"))
	if err := api.List(ctx, list, client.Limit(1)); err != nil || len(list.Items) == 0 {
		return
	}
	log.Info("WARNING: the cluster has EC2NodeClasses, but nodes come from another cloud", "provider", o.cloudProvider, "fix", "give the controller "+toAWS(o),
		"EC2NodeClass", list.Items[0].GetName())
}
