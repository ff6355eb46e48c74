resource "aws_iam_role" "controller" {
  name = "${var.cluster_name}-karpenter"
  assume_role_policy = var.identity == "PodIdentity" ? jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect    = "Allow"
        Principal = { Service = "pods.eks.amazonaws.com" }
        Action    = ["sts:AssumeRole", "sts:TagSession"]
        Condition = {
          StringEquals = {
            "aws:RequestTag/eks-cluster-name"           = var.cluster_name
            "aws:RequestTag/kubernetes-namespace"       = var.namespace
            "aws:RequestTag/kubernetes-service-account" = var.service_account
          }
        }
      }
    ]
    }) : jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect    = "Allow"
        Principal = { Federated = "arn:${local.partition}:iam::${local.account}:oidc-provider/${var.oidc_issuer}" }
        Action    = "sts:AssumeRoleWithWebIdentity"
        Condition = {
          StringEquals = {
            "${var.oidc_issuer}:aud" = "sts.amazonaws.com"
            "${var.oidc_issuer}:sub" = "system:serviceaccount:${var.namespace}:${var.service_account}"
          }
        }
      }
    ]
  })
  lifecycle {
    precondition {
      condition     = var.identity != "IRSA" || var.oidc_issuer != ""
      error_message = "identity is IRSA, so oidc_issuer must be set."
    }
  }
}

resource "aws_eks_pod_identity_association" "controller" {
  count           = var.identity == "PodIdentity" ? 1 : 0
  cluster_name    = var.cluster_name
  namespace       = var.namespace
  service_account = var.service_account
  role_arn        = aws_iam_role.controller.arn
}

resource "aws_iam_role_policy" "controller" {
  name = "controller"
  role = aws_iam_role.controller.name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid    = "LaunchFromWhatIsThere"
        Effect = "Allow"
        Action = ["ec2:CreateFleet", "ec2:RunInstances"]
        Resource = [
          "arn:${local.partition}:ec2:${local.region}::image/*",
          "arn:${local.partition}:ec2:${local.region}::snapshot/*",
          "arn:${local.partition}:ec2:${local.region}:*:security-group/*",
          "arn:${local.partition}:ec2:${local.region}:*:subnet/*",
          "arn:${local.partition}:ec2:${local.region}:*:capacity-reservation/*",
          "arn:${local.partition}:ec2:${local.region}:*:placement-group/*"
        ]
      },
      {
        Sid      = "LaunchFromOwnTemplates"
        Effect   = "Allow"
        Action   = ["ec2:CreateFleet", "ec2:RunInstances"]
        Resource = "arn:${local.partition}:ec2:${local.region}:*:launch-template/*"
        Condition = {
          StringEquals = { "aws:ResourceTag/kubernetes.io/cluster/${var.cluster_name}" = "owned" }
          StringLike   = { "aws:ResourceTag/karpenter.sh/nodepool" = "*" }
        }
      },
      {
        Sid    = "MakeWhatIsTagged"
        Effect = "Allow"
        Action = ["ec2:CreateFleet", "ec2:CreateLaunchTemplate", "ec2:RunInstances"]
        Resource = [
          "arn:${local.partition}:ec2:${local.region}:*:fleet/*",
          "arn:${local.partition}:ec2:${local.region}:*:instance/*",
          "arn:${local.partition}:ec2:${local.region}:*:launch-template/*",
          "arn:${local.partition}:ec2:${local.region}:*:network-interface/*",
          "arn:${local.partition}:ec2:${local.region}:*:spot-instances-request/*",
          "arn:${local.partition}:ec2:${local.region}:*:volume/*"
        ]
        Condition = {
          StringEquals = {
            "aws:RequestTag/kubernetes.io/cluster/${var.cluster_name}" = "owned"
            "aws:RequestTag/eks:eks-cluster-name"                      = var.cluster_name
          }
          StringLike = { "aws:RequestTag/karpenter.sh/nodepool" = "*" }
        }
      },
      {
        Sid    = "TagWhatIsMade"
        Effect = "Allow"
        Action = "ec2:CreateTags"
        Resource = [
          "arn:${local.partition}:ec2:${local.region}:*:fleet/*",
          "arn:${local.partition}:ec2:${local.region}:*:instance/*",
          "arn:${local.partition}:ec2:${local.region}:*:launch-template/*",
          "arn:${local.partition}:ec2:${local.region}:*:network-interface/*",
          "arn:${local.partition}:ec2:${local.region}:*:spot-instances-request/*",
          "arn:${local.partition}:ec2:${local.region}:*:volume/*"
        ]
        Condition = {
          StringEquals = {
            "aws:RequestTag/kubernetes.io/cluster/${var.cluster_name}" = "owned"
            "aws:RequestTag/eks:eks-cluster-name"                      = var.cluster_name
            "ec2:CreateAction"                                         = ["CreateFleet", "CreateLaunchTemplate", "RunInstances"]
          }
          StringLike = { "aws:RequestTag/karpenter.sh/nodepool" = "*" }
        }
      },
      {
        Sid      = "NameOwnInstances"
        Effect   = "Allow"
        Action   = "ec2:CreateTags"
        Resource = "arn:${local.partition}:ec2:${local.region}:*:instance/*"
        Condition = {
          StringEquals                = { "aws:ResourceTag/kubernetes.io/cluster/${var.cluster_name}" = "owned" }
          StringEqualsIfExists        = { "aws:RequestTag/eks:eks-cluster-name" = var.cluster_name }
          StringLike                  = { "aws:ResourceTag/karpenter.sh/nodepool" = "*" }
          "ForAllValues:StringEquals" = { "aws:TagKeys" = ["Name", "eks:eks-cluster-name", "karpenter.sh/nodeclaim", "tenon.sh/cluster"] }
        }
      },
      {
        Sid    = "EndWhatIsOwn"
        Effect = "Allow"
        Action = ["ec2:DeleteLaunchTemplate", "ec2:TerminateInstances"]
        Resource = [
          "arn:${local.partition}:ec2:${local.region}:*:instance/*",
          "arn:${local.partition}:ec2:${local.region}:*:launch-template/*"
        ]
        Condition = {
          StringEquals = { "aws:ResourceTag/kubernetes.io/cluster/${var.cluster_name}" = "owned" }
          StringLike   = { "aws:ResourceTag/karpenter.sh/nodepool" = "*" }
        }
      },
      {
        Sid    = "LookAround"
        Effect = "Allow"
        Action = [
          "ec2:DescribeCapacityReservations",
          "ec2:DescribeImages",
          "ec2:DescribeInstanceStatus",
          "ec2:DescribeInstanceTypeOfferings",
          "ec2:DescribeInstanceTypes",
          "ec2:DescribeInstances",
          "ec2:DescribeLaunchTemplates",
          "ec2:DescribePlacementGroups",
          "ec2:DescribeSecurityGroups",
          "ec2:DescribeSpotPriceHistory",
          "ec2:DescribeSubnets"
        ]
        Resource  = "*"
        Condition = { StringEquals = { "aws:RequestedRegion" = local.region } }
      },
      {
        Sid      = "ReadImageParameters"
        Effect   = "Allow"
        Action   = "ssm:GetParameter"
        Resource = "arn:${local.partition}:ssm:${local.region}::parameter/aws/service/*"
      },
      {
        Sid      = "ReadPrices"
        Effect   = "Allow"
        Action   = "pricing:GetProducts"
        Resource = "*"
      },
      {
        Sid       = "GiveNodesTheirRole"
        Effect    = "Allow"
        Action    = "iam:PassRole"
        Resource  = aws_iam_role.node.arn
        Condition = { StringEquals = { "iam:PassedToService" = ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"] } }
      },
      {
        Sid    = "KeepOwnInstanceProfiles"
        Effect = "Allow"
        Action = [
          "iam:AddRoleToInstanceProfile",
          "iam:CreateInstanceProfile",
          "iam:DeleteInstanceProfile",
          "iam:RemoveRoleFromInstanceProfile",
          "iam:TagInstanceProfile"
        ]
        Resource = "arn:${local.partition}:iam::${local.account}:instance-profile/karpenter/${local.region}/${var.cluster_name}/*"
      },
      {
        Sid      = "RemoveInheritedInstanceProfiles"
        Effect   = "Allow"
        Action   = ["iam:DeleteInstanceProfile", "iam:RemoveRoleFromInstanceProfile"]
        Resource = "arn:${local.partition}:iam::${local.account}:instance-profile/*"
        Condition = {
          StringEquals = {
            "aws:ResourceTag/kubernetes.io/cluster/${var.cluster_name}" = "owned"
            "aws:ResourceTag/topology.kubernetes.io/region"             = local.region
          }
        }
      },
      {
        Sid      = "ReadInstanceProfiles"
        Effect   = "Allow"
        Action   = ["iam:GetInstanceProfile", "iam:ListInstanceProfiles"]
        Resource = "arn:${local.partition}:iam::${local.account}:instance-profile/*"
      },
      {
        Sid      = "HearOfInterruptions"
        Effect   = "Allow"
        Action   = ["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"]
        Resource = aws_sqs_queue.interruption.arn
      },
      {
        Sid      = "ReadTheCluster"
        Effect   = "Allow"
        Action   = "eks:DescribeCluster"
        Resource = "arn:${local.partition}:eks:${local.region}:${local.account}:cluster/${var.cluster_name}"
      },
      {
        Sid      = "ReadZonalShifts"
        Effect   = "Allow"
        Action   = "arc-zonal-shift:GetManagedResource"
        Resource = "*"
        Condition = {
          StringEquals = {
            "arc-zonal-shift:ResourceIdentifier" = "arn:${local.partition}:eks:${local.region}:${local.account}:cluster/${var.cluster_name}"
          }
        }
      }
    ]
  })
}
