# What Tenon needs of an AWS account to make nodes for one EKS cluster. ../cloudformation.yaml makes the same. A test
# (deploy/aws/check) compares the two with each other and with docs/reference/aws/controller-policy.json,
# docs/reference/aws/queue-policy.json and the messages that the controller reads.

data "aws_partition" "current" {}

data "aws_region" "current" {}

data "aws_caller_identity" "current" {}

locals {
  partition = data.aws_partition.current.partition
  region    = data.aws_region.current.region
  account   = data.aws_caller_identity.current.account_id
}

resource "aws_iam_service_linked_role" "spot" {
  count            = var.create_spot_service_linked_role ? 1 : 0
  aws_service_name = "spot.amazonaws.com"
}
