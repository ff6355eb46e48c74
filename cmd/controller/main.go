// Command controller is the autoscaler alone, as it runs in a cluster. What people use beside it is in cmd/tenon.
package main

import (
	"github.com/tenon-sh/tenon/cloudprovider/aws/awscloud"
	"github.com/tenon-sh/tenon/cloudprovider/kwok/kwokcloud"
	"github.com/tenon-sh/tenon/operator"
)

func main() { operator.Main(awscloud.New(), kwokcloud.New()) }
